"""Another user of the machine, who can reach every port on loopback and knows where everything is.

    python -m tests.flows.stage.intruder < TARGET      prints the attempts and their results as JSON

Run as root, it switches to that user first; otherwise it makes only the attempts that need no second user.
"""

import contextlib
import http.client
import json
import os
import socket
import struct
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from msgspec.structs import asdict
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

NOBODY = 65534
PATIENCE_S = 60
SOME_ID = "00000000-0000-4000-8000-000000000000"
GUESSES = ("", "admin:pass", "recrawl:", "recrawl:recrawl")
OPEN = {"/api/health", "/api/ready"}  # only whether the server is running, which its open port shows, too
STREAMS = ("events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled")
SOCKET_PLACES = ("/tmp", "/run/postgresql", "/var/run/postgresql")
EVIL = "evil.example"
OPERATIONS = "every operation of the API, without a name"


@dataclass(frozen=True)
class Target:
    """The targets of an attack. files: folders end with "/".  canary: a file that an injected command would make."""

    port: int
    postgres_port: int
    pages_port: int
    worker_ports: list[int]  # on which Prefect's worker ends its runs
    home: str
    files: list[str]
    pids: list[int]
    canary: str
    known: dict[str, str]  # id of a deployment, a flow, a run


@dataclass
class Tried:
    """An attempt, its number of tries, and what it obtained; nothing if it failed as it should."""

    what: str
    times: int = 0
    had: list[str] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)

    def note(self, had: str | None, answer: str) -> None:
        """Record a try. had: what it obtained and should not have."""
        self.times += 1
        self.answers.add(answer)
        if had is not None and len(self.had) < 10:
            self.had.append(had)


def ask(
    target: Target, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        given = {"content-type": "application/json", **(headers or {})}
        connection.request(method, path, None if body is None else json.dumps(body).encode(), given)
        answer = connection.getresponse()
        return answer.status, answer.read()


def try_to_ask(tried: Tried, target: Target, method: str, path: str, body: object = None, **headers: str) -> None:
    status, said = ask(target, method, path, body, headers)
    # Unauthenticated requests are rejected before they are parsed.
    had = None if status in {401, 403} else f"{method} {path}: {status} {said[:80]!r}"
    tried.note(had, str(status))


def operations(target: Target) -> Iterator[tuple[str, str]]:
    """Return all operations of the API from its OpenAPI description."""
    paths = json.loads(ask(target, "GET", "/openapi.json")[1])["paths"]
    for path, methods in paths.items():
        filled = "/".join(SOME_ID if part.startswith("{") else part for part in path.split("/"))
        whole = filled if filled.startswith("/api") else f"/api{filled}"
        if whole not in OPEN:
            yield from ((method.upper(), whole) for method in methods)


def every_operation(target: Target) -> Tried:
    tried = Tried(OPERATIONS)
    for method, path in operations(target):
        try_to_ask(tried, target, method, path, {} if method in {"POST", "PUT", "PATCH"} else None)
    return tried


def read_by_api(target: Target) -> Tried:
    tried = Tried("read runs, logs, parameters, settings and variables")
    for kind in ("flows", "flow_runs", "deployments", "logs", "artifacts", "variables", "block_documents"):
        try_to_ask(tried, target, "POST", f"/api/{kind}/filter", {})
    for path in ("/api/admin/settings", "/api/admin/version", f"/api/flow_runs/{target.known['run']}"):
        try_to_ask(tried, target, "GET", path)
    return tried


def guess(target: Target) -> Tried:
    tried = Tried("the same with a guessed auth string")
    for each in GUESSES:
        basic = f"Basic {b64encode(each.encode()).decode()}"
        for value in (basic, f"Bearer {each}", basic.lower()):
            try_to_ask(tried, target, "POST", "/api/flows/filter", {}, authorization=value)
    return tried


def start_a_command(target: Target) -> Tried:
    tried = Tried("start a command of his: job variables, pool, deployment, run, automation")
    order = {"command": f"touch {target.canary}"}
    run = {"parameters": {"place": "/"}, "job_variables": order}
    pool = {"job_configuration": order, "variables": {}}
    for method, path, body in (
        ("POST", f"/api/deployments/{target.known['deployment']}/create_flow_run", run),
        ("PATCH", f"/api/deployments/{target.known['deployment']}", {"job_variables": order}),
        ("PATCH", "/api/work_pools/recrawl", {"base_job_template": pool}),
        ("POST", "/api/work_pools/", {"name": "his", "type": "process", "base_job_template": pool}),
        ("POST", "/api/deployments/", {"name": "his", "flow_id": target.known["flow"], "work_pool_name": "recrawl"}),
        ("POST", "/api/flow_runs/", {"flow_id": target.known["flow"], "state": {"type": "SCHEDULED"}}),
        ("POST", "/api/automations/", {"name": "his", "trigger": {}, "actions": []}),
    ):
        try_to_ask(tried, target, method, path, body)
    return tried


def another_name(target: Target) -> Tried:
    tried = Tried("ask under another Host, or from a page of another site")
    port = target.port
    for headers in ({"host": EVIL}, {"host": f"{EVIL}:{port}"}, {"origin": f"http://{EVIL}"}, {"origin": "null"}):
        for path in ("/", "/ui-settings", "/api/health", "/api/flows/filter"):
            try_to_ask(tried, target, "GET", path, None, **headers)
    wish = {"origin": f"http://{EVIL}", "access-control-request-method": "POST"}
    try_to_ask(tried, target, "OPTIONS", "/api/flows/filter", None, **wish)
    return tried


def listen_in(target: Target) -> Tried:
    tried = Tried("listen to events and logs, send events, be a worker, by WebSocket")
    paths = [f"/api/{stream}" for stream in STREAMS] + ["/api/work_pools/recrawl/workers/connect"]
    for path in paths:
        for token in (None, "", "recrawl:recrawl"):
            for protocol in (True, False):
                answer = open_stream(target, path, token, protocol=protocol)
                tried.note(f"{path}: {answer}" if answer.startswith("let in") else None, answer)
    return tried


def open_stream(target: Target, path: str, token: str | None, *, protocol: bool) -> str:
    """Open a WebSocket; return whether it was accepted."""
    try:
        with connect(
            f"ws://127.0.0.1:{target.port}{path}",
            subprotocols=["prefect"] if protocol else None,  # type: ignore[list-item]
            open_timeout=PATIENCE_S,
        ) as stream:
            if protocol:
                stream.send(json.dumps({"type": "auth", "token": token}))
                if "auth_success" in str(stream.recv(PATIENCE_S)):
                    return "let in"
                return "excluded"
            stream.send(json.dumps({"type": "filter", "filter": {}}))
            stream.ping().wait(PATIENCE_S)
            with contextlib.suppress(TimeoutError):
                stream.recv(2)
            return "let in"
    except (WebSocketException, OSError):
        return "excluded"


def connect_to_postgres(target: Target) -> Tried:
    tried = Tried("connect to Postgres: any of its users and databases, no password or a guessed one")
    for user in ("postgres", "recrawl-postgres", "nobody", "root"):
        for database in ("crawl", "prefect", "postgres"):
            for password in ("", "postgres", "recrawl"):
                secret = f":{password}" if password else ""
                url = f"postgresql://{user}{secret}@127.0.0.1:{target.postgres_port}/{database}"
                try:
                    psycopg.connect(url, connect_timeout=PATIENCE_S).close()
                    tried.note(f"{user} in {database}", "let in")
                except psycopg.OperationalError:
                    tried.note(None, "excluded")
    for place in SOCKET_PLACES:
        if Path(place, f".s.PGSQL.{target.postgres_port}").exists():
            tried.note(place, "there")
    return tried


def read_files(target: Target) -> Tried:
    tried = Tried("open every file in RECRAWL_HOME and all shared memory, list every folder, add a file")
    for name in target.files:
        path = Path(name)
        if name.endswith("/"):
            attempt(tried, f"list {name}", partial(os.listdir, path))
            attempt(tried, f"add to {name}", (path / "his").touch)
        else:
            attempt(tried, f"read {name}", path.read_bytes)
            attempt(tried, f"write {name}", partial(path.open, "ab"))
    return tried


def attempt(tried: Tried, what: str, action: Callable[[], object]) -> None:
    """Try something that the system should forbid."""
    try:
        action()
    except OSError as error:
        tried.note(None, str(error.strerror))
    else:
        tried.note(what, "done")


def look_at_processes(target: Target) -> Tried:
    tried = Tried("read environment, memory, open files and folder of every process of the stack; end it")
    for pid in target.pids:
        place = Path("/proc") / str(pid)
        for name in ("environ", "mem", "maps"):
            attempt(tried, f"{name} of {pid}", partial(read_a_byte, place / name))
        for name in ("cwd", "exe"):
            attempt(tried, f"{name} of {pid}", (place / name).readlink)
        attempt(tried, f"open files of {pid}", partial(os.listdir, place / "fd"))
        attempt(tried, f"end {pid}", partial(os.kill, pid, 0))  # only checks the permission
    return tried


def read_a_byte(path: Path) -> None:
    with path.open("rb") as file:
        file.read(1)


def command_lines(target: Target) -> str:
    """Return everything that every user may read about the processes."""
    found = [Path("/proc", str(pid), "cmdline") for pid in target.pids]
    return " ".join(path.read_bytes().replace(b"\0", b" ").decode() for path in found if path.exists())


def talk_to_the_worker(target: Target) -> Tried:
    tried = Tried("talk to the port on which Prefect's worker talks with its runs, with a guessed token")
    for port in target.worker_ports:
        for token in (b"", b"0" * 32, b"recrawl"):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as own:
                    own.sendall(token + b"\n")
                    said = own.recv(100)
            except ConnectionError:
                said = b""
            tried.note(f"{port}: {said!r}" if said else None, "hangs up")
    return tried


def enter_the_pages(target: Target) -> Tried:
    tried = Tried("see a page of the user's own, or send its forms: no code or session, guessed ones, another name")
    own = f"http://127.0.0.1:{target.pages_port}"
    session = {"cookie": f"recrawl_{target.pages_port}=1.a.b"}
    for headers in ({}, session, {"host": EVIL}, {"origin": f"http://{EVIL}"}, {"origin": own, **session}):
        for method, path in (
            *(("GET", path) for path in ("/", "/changes", "/domain?name=x", "/page?url=x", "/enter?code=1.a.b")),
            *(("POST", path) for path in ("/domains/add", "/domains/set", "/refresh", "/rules/add", "/try")),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", target.pages_port, timeout=PATIENCE_S)
            with contextlib.closing(connection):
                form = b"name=x&url=x&word=x" if method == "POST" else None
                connection.request(method, path, form, dict(headers))
                status = connection.getresponse().status
            tried.note(None if status in {401, 403} else f"{method} {path}: {status}", str(status))
    return tried


def take_the_port(target: Target) -> Tried:
    tried = Tried("listen on the ports of the running stack")
    for port in (target.port, target.postgres_port, target.pages_port):
        with socket.socket() as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                own.bind(("127.0.0.1", port))
                own.listen()
                tried.note(str(port), "taken")
            except OSError as error:
                tried.note(None, str(error.strerror))
    return tried


ANYBODY = (
    read_by_api,
    guess,
    start_a_command,
    another_name,
    listen_in,
    talk_to_the_worker,
    connect_to_postgres,
    enter_the_pages,
    every_operation,  # including those that clear the database
)
ANOTHER_USER = (read_files, look_at_processes, take_the_port)


def main() -> None:
    target = Target(**json.load(sys.stdin))
    is_root = os.geteuid() == 0
    if is_root:
        for each in (another_name, listen_in, connect_to_postgres):
            each(target)  # imports its modules while they are readable: Python may be installed in the home of root
        os.chdir("/")
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    tried = [each(target) for each in (*ANYBODY, *(ANOTHER_USER if is_root else ()))]
    found = [{**asdict(each), "answers": sorted(each.answers)} for each in tried]
    json.dump({"tried": found, "command_lines": command_lines(target)}, sys.stdout)


if __name__ == "__main__":
    main()
