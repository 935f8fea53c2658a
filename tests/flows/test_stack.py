"""The local stack: up, down, and after each of its parts was killed with SIGKILL."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import psutil
import psycopg
import pytest
from pydantic import SecretStr

from crawler.errors import StackFailed
from crawler.runtime import machine
from crawler.runtime.background_processes import SERVER, WEB_UI, ensure_tag, find_child, get_note_file, list_tagged
from crawler.runtime.environment import PrefectApi, build_api_url
from crawler.runtime.keys.home_keys import ensure_key, is_own_server, list_own_origins, read_auth
from crawler.runtime.lifecycle import start_stack, stop_stack
from crawler.runtime.machine import find_free_port, is_port_free, write_private
from crawler.runtime.postgres.cluster import borrow_postgres, find_running_postgres
from crawler.runtime.stack import Stack, find_running_stack, find_server, open_crawl_database, read_status
from crawler.runtime.web_ui import create_login_link
from tests.flows.stage import (
    ENDED,
    STAGE,
    ask,
    cancel_run,
    change,
    complaints,
    order,
    run_state,
    settings_of,
    task_states,
)
from tests.flows.stage.intruder import OPERATIONS
from tests.patience import COSTLY_POLL_S, PATIENCE_S, SLOW, until

pytestmark = [pytest.mark.xdist_group("stack"), SLOW]

ROOT = Path(__file__).parents[2]
WORKER_PORTS = 2  # opened by Prefect's worker, one after the other
SHARED_MEMORY = re.compile(r"/dev/shm/PostgreSQL\S*")


@pytest.fixture(scope="module")
def staged(home: Path) -> Stack:
    """Return the stack as the module finds it, with the flows of the stage."""
    return start_stack(settings_of(home), report=print, deployments=STAGE)


@pytest.fixture
def stack(staged: Stack) -> Stack:
    """Return the running stack, after restarting parts that an earlier test killed."""
    settings = settings_of(staged.home)
    found = find_running_stack(settings)
    is_whole = found is not None and all(part.is_running for part in read_status(settings))
    return found if found is not None and is_whole else again(staged)


def hold_on(stack: Stack, place: Path, **wishes: object) -> str:
    """Start a run that ends only on request, and wait until it has begun. wishes: more fields of the run."""
    run = order(stack.api, "hold/hold", {"parameters": {"place": str(place)}, **wishes})

    def has_begun() -> bool:
        assert run_state(stack.api, run) not in ENDED
        return (place / "begun").exists()

    until(has_begun, poll_s=COSTLY_POLL_S)
    return run


def again(stack: Stack) -> Stack:
    return start_stack(settings_of(stack.home), report=print, deployments=STAGE)


def test_up_gives_a_stack_that_status_shows_and_a_second_up_finds(stack: Stack) -> None:
    assert all(part.is_running for part in read_status(settings_of(stack.home)))
    assert find_running_stack(settings_of(stack.home)) == stack
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(again, [stack, stack])) == [stack, stack]


def test_the_user_interface_is_there_and_advertises_nothing(stack: Stack) -> None:
    settings = ask(stack.api, "/admin/settings")
    assert settings["server"]["analytics_enabled"] is False
    assert settings["server"]["ui"]["show_promotional_content"] is False
    assert ask(PrefectApi(stack.api.ui_url), "/ui-settings")["api_url"] == stack.api.url


def test_a_scheduled_run_appears_and_starts_and_the_scheduler_is_content(stack: Stack) -> None:
    def states() -> set[str]:
        runs = ask(stack.api, "/flow_runs/filter", {"deployments": {"name": {"any_": ["nap"]}}})
        return {run["state_name"] for run in runs if run["auto_scheduled"]}

    until(lambda: {"Scheduled", "Completed"} <= states(), poll_s=COSTLY_POLL_S)
    assert complaints(stack.home) == []
    nap = ask(stack.api, "/deployments/name/nap/nap")
    ask(stack.api, f"/deployments/{nap['id']}/pause_deployment", {})  # each of its runs takes seconds of processor time


def target_of(stack: Stack, canary: Path) -> dict[str, Any]:
    """Return everything that another user of the machine could find out, and more."""
    until(lambda: len(listening(stack.worker.pid)) >= WORKER_PORTS)
    cluster = find_running_postgres(stack.home)
    assert cluster is not None
    pids = [process.pid for process in list_tagged(ensure_tag(stack.home))]
    pids += [cluster.pid, *(child.pid for child in psutil.Process(cluster.pid).children())]
    kept = [str(path) + "/" * path.is_dir() for path in (stack.home, *stack.home.rglob("*"))]
    shared = set().union(*map(shared_memory, pids))
    deployment = ask(stack.api, "/deployments/name/hold/hold")
    (run, *_) = ask(stack.api, "/flow_runs/filter", {})
    pages = find_child(stack.home, WEB_UI)
    assert pages is not None
    return {
        "port": int(stack.api.ui_url.rpartition(":")[2]),
        "postgres_port": cluster.port,
        "pages_port": pages.port,
        "worker_ports": sorted(listening(stack.worker.pid)),
        "home": str(stack.home),
        "files": kept + sorted(shared),
        "pids": pids,
        "canary": str(canary),
        "known": {"deployment": deployment["id"], "flow": deployment["flow_id"], "run": run["id"]},
    }


def listening(pid: int) -> set[int]:
    """Return the ports on which a process listens."""
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(pid).net_connections()
        return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}
    return set()


def shared_memory(pid: int) -> set[str]:
    """Return the shared-memory files of a process."""
    with suppress(OSError):
        return set(SHARED_MEMORY.findall(Path(f"/proc/{pid}/maps").read_text()))
    return set()


@pytest.mark.soak
def test_another_user_of_the_machine_can_read_nothing_and_start_nothing(stack: Stack, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    run = hold_on(stack, tmp_path)  # to have the process of a run, too
    target = target_of(stack, canary)
    known = {target["port"], target["postgres_port"], target["pages_port"], *target["worker_ports"]}
    assert set().union(*map(listening, target["pids"])) <= known
    assert target["worker_ports"]

    found = intrude(target)

    assert {each["what"]: each["had"] for each in found["tried"]} == {each["what"]: [] for each in found["tried"]}
    assert all(each["times"] for each in found["tried"])
    (operations,) = [each for each in found["tried"] if each["what"] == OPERATIONS]
    assert operations["times"] > 100
    for secret in secrets_of(stack):
        assert secret not in found["command_lines"]
    assert not canary.exists()
    cancel_run(stack.api, run)
    if os.geteuid() == 0:
        told = (ROOT / "SECURITY.md").read_text()
        assert [each["what"] for each in found["tried"] if f"| {each['what']} |" not in told] == []


def intrude(target: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.flows.stage.intruder"],
        input=json.dumps(target),
        env={"PATH": os.defpath},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def secrets_of(stack: Stack) -> tuple[str, str]:
    cluster = find_running_postgres(stack.home)
    assert cluster is not None
    assert stack.api.auth is not None
    return stack.api.auth.rpartition(":")[2], cluster.password


def test_secrets_stand_in_files_of_their_own_that_the_owner_alone_can_read(stack: Stack) -> None:
    auth, password = secrets_of(stack)
    key = ensure_key(stack.home)
    for secret, place in ((auth, "run/auth"), (password, "postgres/*/password"), (key, "run/pages-key")):
        (only,) = stack.home.glob(place)
        assert only.stat().st_mode & 0o777 == 0o600
        files = [path for path in stack.home.rglob("*") if path.is_file() and "data" not in path.parts]
        assert [path for path in files if secret.encode() in path.read_bytes()] == [only]
    assert auth not in repr(stack) + repr(read_status(settings_of(stack.home)))
    others = {path for path in (stack.home, *stack.home.iterdir()) if path.stat().st_mode & 0o077}
    assert others == set()


@pytest.mark.soak
def test_one_command_shows_the_way_in_and_the_others_do_not(stack: Stack) -> None:
    unset = ("RECRAWL_DATABASE_URL", "PREFECT_API_URL", "PREFECT_API_AUTH_STRING")
    environment = {name: value for name, value in os.environ.items() if name not in unset}

    def recrawl(*arguments: str) -> str:
        command = [sys.executable, "-m", "crawler", *arguments]
        own = {**environment, "RECRAWL_HOME": str(stack.home)}
        return subprocess.run(command, env=own, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    shown = json.loads(recrawl("ui", "--json"))
    assert PrefectApi(shown["prefect_api"], shown["prefect_auth"]) == stack.api
    assert shown["prefect_ui"] == stack.api.ui_url
    said = recrawl("ui")
    assert stack.api.ui_url in said
    assert shown["prefect_auth"] in said
    for arguments in (("status",), ("status", "--json"), ("ui", "--help")):
        assert shown["prefect_auth"] not in recrawl(*arguments)
    # Prefect's own command can log in with it, too.
    known = {"PREFECT_API_URL": shown["prefect_api"], "PREFECT_API_AUTH_STRING": shown["prefect_auth"]}
    command = [sys.executable, "-m", "prefect", "deployment", "ls"]
    done = subprocess.run(command, env=environment | known, capture_output=True, text=True, check=False)
    assert "hold/hold" in done.stdout, done.stderr


def test_who_knows_the_string_gets_in_only_by_the_servers_own_address(stack: Stack) -> None:
    port = int(stack.api.ui_url.rpartition(":")[2])
    for origin in list_own_origins(port):
        assert ask(stack.api, "/flows/filter", {}, origin=origin, host=origin.removeprefix("http://"))
    for headers in ({"host": f"evil.example:{port}"}, {"host": "127.0.0.1"}, {"origin": f"http://evil.example:{port}"}):
        with pytest.raises(HTTPError, match="403"):
            ask(stack.api, "/flows/filter", {}, **headers)


@pytest.mark.soak
def test_what_an_earlier_version_has_left_open_is_closed_by_the_next_up(stack: Stack, tmp_path: Path) -> None:
    open_pool = ask(stack.api, "/work_pools/recrawl")["base_job_template"]
    open_pool["job_configuration"]["command"] = "{{ command }}"
    open_pool["variables"]["properties"]["command"] = {"type": "string", "default": f"touch {tmp_path / 'canary'}"}
    change(stack.api, "/work_pools/recrawl", {"base_job_template": open_pool})
    home = stack.home
    note = json.loads(get_note_file(home, SERVER).read_text())
    del note["facts"]["auth"]  # a server without authentication
    get_note_file(home, SERVER).write_text(json.dumps(note))
    (home / "run" / "auth").unlink()
    for path in (home, *home.iterdir(), home / "logs" / "worker.log"):
        path.chmod(0o755)

    upgraded = again(stack)

    assert upgraded.server != stack.server
    assert upgraded.worker != stack.worker
    assert upgraded.api.auth not in {None, stack.api.auth}
    with pytest.raises(HTTPError, match="401"):
        ask(stack.api, "/flows/filter", {})
    template = ask(upgraded.api, "/work_pools/recrawl")["base_job_template"]
    assert template["job_configuration"]["command"] == "python -m prefect.engine"
    assert "command" not in template["variables"]["properties"]
    assert {path for path in (home, *home.iterdir()) if path.stat().st_mode & 0o077} == set()
    assert again(upgraded) == upgraded


@pytest.mark.soak
def test_an_auth_string_sent_to_a_process_on_a_dead_servers_port_is_useless(stack: Stack) -> None:
    assert stack.server is not None
    assert stack.api.auth is not None
    others = [process.pid for process in list_tagged(ensure_tag(stack.home)) if process != stack.server]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)  # Prefect's own worker would keep polling
    os.kill(stack.server.pid, signal.SIGKILL)
    port = int(stack.api.ui_url.rpartition(":")[2])
    until(lambda: is_port_free(port))
    with impostor(port) as told:
        assert find_running_stack(settings_of(stack.home)) is None
        with pytest.raises(StackFailed, match="recrawl up"):
            find_server(settings_of(stack.home))
        assert not all(part.is_running for part in read_status(settings_of(stack.home)))
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        token = b64encode(stack.api.auth.encode())
        assert [request for request in told if token in request] == []
        moved = again(stack)
        assert moved.api.url != stack.api.url
        assert moved.api.auth != stack.api.auth
        with pytest.raises(HTTPError, match="401"):
            ask(PrefectApi(moved.api.url, stack.api.auth), "/flows/filter", {})


@contextmanager
def impostor(port: int) -> Iterator[list[bytes]]:
    """Run another program on that port that reports to be healthy, and record what it receives."""
    told: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            told.append(self.connection.recv(1 << 16))
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntrue")

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield told
        server.shutdown()


@pytest.mark.soak
def test_a_cancelled_run_releases_what_it_holds(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    cancel_run(stack.api, run)
    assert (tmp_path / "released").exists()


@pytest.mark.soak
def test_after_the_worker_and_its_runs_were_killed_the_run_counts_as_crashed(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    until(lambda: task_states(stack.api, run) == ["Running"], poll_s=COSTLY_POLL_S)
    for process in list_tagged(ensure_tag(stack.home)):
        if process != stack.server:
            os.kill(process.pid, signal.SIGKILL)
    restarted = again(stack)
    assert restarted.server == stack.server
    assert restarted.worker != stack.worker
    assert run_state(stack.api, run) == "Crashed"
    assert task_states(stack.api, run) == ["Crashed"]


@pytest.mark.soak
def test_a_run_whose_worker_was_killed_does_not_live_on(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    os.kill(stack.worker.pid, signal.SIGKILL)
    restarted = again(stack)
    pages = find_child(stack.home, WEB_UI)
    assert {process.pid for process in list_tagged(ensure_tag(stack.home))} <= {
        restarted.worker.pid,
        *([pages.process.pid] if pages else []),
        *([restarted.server.pid] if restarted.server else []),
        *children_of(restarted.worker.pid),
    }
    assert run_state(stack.api, run) in {"Crashed", "Cancelled"}


def children_of(pid: int) -> set[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return {int(line) for line in found.split()}


@pytest.mark.soak
def test_a_run_survives_the_death_of_postgres_and_of_the_server(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    cluster = find_running_postgres(stack.home)
    assert cluster is not None
    assert stack.server is not None
    os.kill(cluster.pid, signal.SIGKILL)
    os.kill(stack.server.pid, signal.SIGKILL)
    restarted = again(stack)
    assert restarted.worker == stack.worker
    assert restarted.api.url == stack.api.url
    assert run_state(stack.api, run) == "Running"
    cancel_run(stack.api, run)
    assert (tmp_path / "released").exists()


def test_the_web_ui_runs_in_the_stack_and_its_login_link_works_once(stack: Stack) -> None:
    address = create_login_link(stack.home)
    assert address is not None
    key = ensure_key(stack.home)
    assert key not in address
    with pytest.raises(HTTPError) as unknown:
        urlopen(address.partition("/enter")[0], timeout=PATIENCE_S)
    assert unknown.value.code == 401
    opener = build_opener(HTTPCookieProcessor())
    with opener.open(address, timeout=PATIENCE_S) as answer:
        assert b"Domains" in answer.read()
    with pytest.raises(HTTPError) as used:
        urlopen(address, timeout=PATIENCE_S)
    assert used.value.code == 403

    server = find_child(stack.home, WEB_UI)
    assert server is not None
    os.kill(server.process.pid, signal.SIGKILL)
    until(lambda: not server.process.is_running())
    assert create_login_link(stack.home) is None
    port = int(server.facts["port"])
    until(lambda: machine.is_port_free(port))  # the last threads of a killed process hold its sockets a little longer
    other = subprocess.Popen(["sleep", "600"])
    found = machine.find_process(other.pid)
    assert found is not None
    note = {"pid": found.pid, "start_id": found.start_id, "facts": server.facts}
    with impostor(port) as told:
        write_private(get_note_file(stack.home, WEB_UI), json.dumps(note))
        assert create_login_link(stack.home) is None, "who has taken its port is told no code"
        assert not any(b"code=" in request for request in told)
    other.kill()
    other.wait()
    again(stack)
    assert create_login_link(stack.home) is not None


def test_a_run_cannot_choose_its_command_and_down_ends_it_properly_and_leaves_nothing(
    stack: Stack, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    run = hold_on(stack, tmp_path, job_variables={"command": f"touch {canary}"})
    assert stop_stack(settings_of(stack.home), report=print)
    assert (tmp_path / "released").exists()
    assert not canary.exists()
    assert list_tagged(ensure_tag(stack.home)) == []
    assert find_running_postgres(stack.home) is None
    assert not any(part.is_running for part in read_status(settings_of(stack.home)))
    assert not stop_stack(settings_of(stack.home), report=print)
    with borrow_postgres(stack.home) as cluster, psycopg.connect(cluster.build_url("prefect")) as connection:
        found = connection.execute("SELECT state_name FROM flow_run WHERE id = %s", (run,)).fetchall()
    assert found == [("Cancelled",)]


@pytest.mark.soak
def test_a_killed_up_is_finished_by_the_next(home: Path) -> None:
    stop_stack(settings_of(home), report=print)
    command = (
        "import sys, pathlib; from crawler.settings import Settings\n"
        "from crawler.runtime.lifecycle import start_stack\n"
        "settings = Settings(home=pathlib.Path(sys.argv[1]), database_url=None, PREFECT_API_URL=None)\n"
        "start_stack(settings, report=lambda line: print(line, flush=True))"
    )
    starting = subprocess.Popen([sys.executable, "-c", command, home], stdout=subprocess.PIPE, text=True)
    assert starting.stdout is not None
    for line in starting.stdout:
        if "Deployments" in line:
            starting.kill()
    assert starting.wait() == -signal.SIGKILL
    orphan = find_child(home, SERVER)
    assert orphan is not None
    get_note_file(home, SERVER).unlink()  # as if it had been killed between the start and the note
    stack = start_stack(settings_of(home), report=print, deployments=STAGE)
    assert not orphan.process.is_running()
    assert stack.api.url == build_api_url(orphan.port)
    assert all(part.is_running for part in read_status(settings_of(home)))
    others = {process.pid for process in list_tagged(ensure_tag(home))} - {stack.worker.pid}
    assert stack.server is not None
    pages = find_child(home, WEB_UI)
    assert pages is not None
    assert others - children_of(stack.worker.pid) == {stack.server.pid, pages.process.pid}


@pytest.mark.soak
def test_when_the_usual_port_is_taken_another_is_chosen_but_not_instead_of_a_named_one(home: Path) -> None:
    stop_stack(settings_of(home), report=print)
    port = int((home / "run" / "port").read_text())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(StackFailed, match=rf"port {port} \(RECRAWL_PREFECT_PORT\) is taken by another program"):
            start_stack(settings_of(home, prefect_port=port), report=print, deployments=STAGE)
        assert find_running_postgres(home) is None  # Postgres was started for it and is stopped again
        lines: list[str] = []
        stack = start_stack(settings_of(home), report=lines.append, deployments=STAGE)
        assert not stack.api.url.startswith(f"http://127.0.0.1:{port}/")
        assert any(f"Port {port} is taken" in line for line in lines)


@pytest.mark.soak
def test_two_stacks_that_start_together_on_one_port_do_not_mix_up() -> None:
    command = (
        "import sys, pathlib; from crawler.settings import Settings\n"
        "from crawler.runtime.lifecycle import start_stack, stop_stack\n"
        "settings = Settings(home=pathlib.Path(sys.argv[1]), database_url=None, PREFECT_API_URL=None)\n"
        "print('UP', start_stack(settings, report=print).api.url, flush=True)\n"
        "input(); stop_stack(settings, report=print)"
    )
    port = find_free_port("two stacks")
    homes = [Path(tempfile.mkdtemp(prefix="recrawl-stack-twin-")) for _ in range(2)]
    started = []
    for home in homes:
        home.chmod(0o755)
        (home / "run").mkdir()
        (home / "run" / "port").write_text(str(port), encoding="ascii")
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", command, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
    urls = [
        next((line.split()[1] for line in process.stdout or () if line.startswith("UP")), "") for process in started
    ]
    ports = [int(url.removesuffix("/api").rpartition(":")[2]) for url in urls]
    auths = [read_auth(home) or "" for home in homes]
    # Each accepts only its own auth string.
    assert [[is_own_server(port, auth) for auth in auths] for port in ports] == [[True, False], [False, True]]
    for process, home in zip(started, homes, strict=True):
        process.communicate("\n")
        assert process.returncode == 0
        shutil.rmtree(home)


@pytest.mark.soak
def test_a_foreign_prefect_server_is_used_and_not_stopped(stack: Stack, tmp_path: Path) -> None:
    guest_home = Path(tempfile.mkdtemp(prefix="recrawl-stack-guest-"))
    guest_home.chmod(0o755)
    assert stack.api.auth is not None
    known = {"prefect_api_url": stack.api.url, "prefect_api_auth_string": SecretStr(stack.api.auth)}
    guest = settings_of(guest_home).model_copy(update=known)
    theirs = hold_on(stack, tmp_path)
    started = start_stack(guest, report=print, deployments=STAGE)
    assert started.server is None
    assert started.api == find_server(guest) == stack.api
    assert stop_stack(guest, report=print)
    assert find_running_stack(settings_of(stack.home)) == stack
    assert run_state(stack.api, theirs) == "Running"
    shutil.rmtree(guest_home)


def test_a_missing_prefect_server_is_a_one_line_error(home: Path) -> None:
    nowhere = settings_of(home).model_copy(update={"prefect_api_url": "http://127.0.0.1:1/api"})
    with pytest.raises(StackFailed, match=r"no Prefect server responds at .* \(PREFECT_API_URL\)"):
        start_stack(nowhere, report=print, deployments=STAGE)


@pytest.mark.soak
def test_a_borrowed_database_is_stopped_by_the_last_borrower_and_not_while_the_stack_is_up(home: Path) -> None:
    stop_stack(settings_of(home), report=print)
    with open_crawl_database(settings_of(home)) as url:
        with open_crawl_database(settings_of(home)) as same:
            assert same == url
        assert find_running_postgres(home) is not None
    assert find_running_postgres(home) is None
    start_stack(settings_of(home), report=print, deployments=STAGE)
    with open_crawl_database(settings_of(home)):
        pass
    assert find_running_postgres(home) is not None
