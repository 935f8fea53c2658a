"""Create, start and stop a Postgres cluster in a folder, with the programs of Postgres."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from crawler.errors import StackFailed
from crawler.runtime.machine import ensure_private_folder, find_free_port, write_private
from crawler.runtime.postgres.account import Account
from crawler.runtime.postgres.binaries import Binaries, copy_for_everybody

USER = "postgres"
MIN_FREE_BYTES = 200_000_000  # a new cluster takes 40 MB, and its first write-ahead logs take more than that
START_SECONDS = 600  # replaying a long log after a crash takes minutes
LEFTOVER_SECONDS = 120  # for processes that remain after a kill -9
SHARED_BUFFERS_MB = 2048  # fits a million pages with their links; at most a quarter of the machine's memory


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one installation, for one cluster folder and the account that runs them."""

    account: Account
    bin: Path
    major: int
    folder: Path
    path: str  # to the folder, for that account
    handles: tuple[int, ...]  # see Account.open_path_to

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def run(self, program: str, *arguments: str) -> tuple[bool, str]:
        """Run a program. Return whether it succeeded, and its output."""
        return self.account.run([str(self.bin / program), *arguments], handles=self.handles)


@contextmanager
def open_programs(binaries: Binaries, home: Path, account: Account) -> Iterator[Programs]:
    """Prepare the programs of an installation for the cluster of `home` and an account."""
    folder = ensure_private_folder(home, "postgres") / str(binaries.major)
    folder.mkdir(mode=0o700, exist_ok=True)
    account.grant_access(folder)
    if not account.can_enter(binaries.bin):
        binaries = copy_for_everybody(binaries)
    with account.open_path_to(folder) as (path, handles):
        yield Programs(account, binaries.bin, binaries.major, folder, path, handles)


def find_data_major(home: Path) -> int | None:
    """Return the newest major version of the data in `home`; None without data."""
    return max((int(found.parts[-3]) for found in home.glob("postgres/[1-9]*/data/PG_VERSION")), default=None)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server of a data folder."""

    pid: int
    port: int
    is_ready: bool


def find_server(data: Path) -> RunningServer | None:
    """Return the server of a data folder, by its postmaster.pid and the working directory of that process."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    # Lines: process, folder, start, port, socket folder, address, shared memory, state. They are written one by one.
    if len(lines) < 4 or not is_working_in(int(lines[0]), data):
        return None
    return RunningServer(int(lines[0]), int(lines[3]), len(lines) >= 8 and lines[7].strip() == "ready")


def is_working_in(pid: int, data: Path) -> bool:
    """Return whether the process works in that folder; after a reboot the id may belong to another program."""
    with suppress(psutil.Error):
        return Path(psutil.Process(pid).cwd()) == data
    return False


def make_cluster(programs: Programs) -> None:
    """Create an empty cluster; the folder `data` appears once it is complete."""
    folder = programs.folder
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise StackFailed(describe_full_disk(folder))
    temporary, password_file = folder / "making", folder / "password.once"
    shutil.rmtree(temporary, ignore_errors=True)  # left by a process that was killed here
    temporary.mkdir(mode=0o700)
    password = secrets.token_urlsafe(24)
    for file in (folder / "password", password_file):
        write_private(file, password)
    for path in (temporary, password_file):
        programs.account.give_ownership(path)
    # Without --auth, all users of the machine could connect as any user. From version 17 on, the locale is built into
    # Postgres, so a system update cannot change the order of an index.
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    # Many iterations protect a weak password. For a random one, they only add 5 ms of CPU time to each connection.
    iterations = ["--set=scram_iterations=1"] if programs.major >= 16 else []
    succeeded, output = programs.run(
        "initdb",
        f"--pgdata={programs.path}/making",
        f"--username={USER}",
        f"--pwfile={programs.path}/password.once",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        *iterations,
        *(locale if programs.major >= 17 else ["--locale=C.UTF-8"]),
    )
    password_file.unlink()
    if not succeeded:
        failure = f"the database in {folder} cannot be created: {find_error_line(output)}"
        raise StackFailed(explain_failure(output, folder) or failure)
    temporary.rename(programs.data)


def build_options(*, durable: bool) -> dict[str, str]:
    """Return the settings of the server without the port."""
    quarter_mb = psutil.virtual_memory().total // 4 // 2**20
    zone = {"timezone": "UTC", "log_timezone": "UTC"}
    server_options = zone | {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": "100",  # the Prefect server keeps 8 to 15 of them
        "shared_buffers": f"{min(SHARED_BUFFERS_MB, quarter_mb)}MB",
        "max_wal_size": "4GB",
        "jit": "off",
        "log_checkpoints": "off",
    }
    unsafe_options = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}
    return server_options if durable else server_options | unsafe_options


def launch_server(programs: Programs, server_options: dict[str, str]) -> None:
    """Start the server and wait until it is ready; use another port if the recorded one is in use.

    Also wait for a server that another process has started and that is still recovering. Raises StackFailed.
    """
    programs.log.touch(mode=0o600)
    programs.account.give_ownership(programs.log)
    remove_reused_pid(programs.data)
    started = time.monotonic()
    tried_ports: list[int] = []
    while True:
        port = choose_port(programs.folder, tried_ports)
        output = try_to_start(programs, {**server_options, "port": str(port)})
        server = find_server(programs.data)
        if server is not None and server.is_ready:
            write_private(programs.folder / "port", str(server.port))
            return
        if "could not bind" in output and len(tried_ports) < 5:
            tried_ports.append(port)
            continue
        # After a kill -9, old processes may still be ending, or hold the shared memory.
        is_blocked = '"postmaster.pid" already exists' in output or "shared memory block" in output
        max_seconds = LEFTOVER_SECONDS if server is None else START_SECONDS
        if not is_blocked or time.monotonic() - started > max_seconds:
            failure = f"{find_error_line(output)} (see {programs.log})"
            raise StackFailed(explain_failure(output, programs.folder) or failure)
        time.sleep(0.2)


def try_to_start(programs: Programs, server_options: dict[str, str]) -> str:
    """Start the server and wait until it is ready or gives up. Return its new log lines."""
    log_size = programs.log.stat().st_size
    settings = " ".join(f"-c {name}='{value}'" for name, value in server_options.items())
    files = (f"--pgdata={programs.path}/data", f"--log={programs.path}/server.log")
    _, output = programs.run("pg_ctl", *files, "--wait", f"--timeout={START_SECONDS}", f"--options={settings}", "start")
    with programs.log.open("rb") as log:
        log.seek(log_size)
        return log.read().decode(errors="replace") or output


def choose_port(folder: Path, tried_ports: list[int]) -> int:
    """Return the recorded port, or a free one if there is none or it did not work."""
    if not tried_ports:
        with suppress(FileNotFoundError, ValueError):
            return int((folder / "port").read_text(encoding="ascii"))
    return find_free_port(str(folder), excluded=tuple(tried_ports))


def remove_reused_pid(data: Path) -> None:
    """Remove a postmaster.pid whose process id belongs to another program now; Postgres would not start with it."""
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text(encoding="utf-8").splitlines()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return
    # Never while a process works in the folder: sessions of a killed server may still be writing.
    if psutil.pid_exists(pid) and not any(is_working_in(other, data) for other in psutil.pids()):
        pid_file.unlink()


def shut_down(programs: Programs) -> None:
    """Stop the running server, even with open connections."""
    output = ""
    for mode in ("fast", "immediate"):  # immediate if a session does not end; the next start recovers
        # A stop takes a second on an idle machine.
        arguments = (f"--pgdata={programs.path}/data", f"--mode={mode}", "--wait", "--timeout=300")
        stopped, output = programs.run("pg_ctl", *arguments, "stop")
        if stopped or find_server(programs.data) is None:
            return
    raise StackFailed(f"the embedded Postgres cannot be stopped: {find_error_line(output)}")


def explain_failure(output: str, folder: Path) -> str | None:
    """Return the message of a known failure, or None."""
    if "No space left on device" in output:
        return describe_full_disk(folder)
    if "could not bind" in output:
        return "other programs took all ports that were tried on 127.0.0.1: run the command again"
    return None


def describe_full_disk(folder: Path) -> str:
    free_mb = shutil.disk_usage(folder).free // 10**6
    return (
        f"the disk of {folder} is full ({free_mb} MB free, {MIN_FREE_BYTES // 10**6} needed): free some space,"
        " or set RECRAWL_HOME to a folder on another disk"
    )


def find_error_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()] or ["Postgres gave no reason"]
    return next((line for line in reversed(lines) if "FATAL" in line or "error" in line), lines[-1])
