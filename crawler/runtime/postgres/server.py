"""Running the programs of Postgres on one folder: making a cluster, starting its server, stopping it."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from crawler.errors import StackFailed
from crawler.runtime.machine import free_port, private_folder, write_private
from crawler.runtime.postgres.account import Account
from crawler.runtime.postgres.binaries import Binaries, for_everybody

USER = "postgres"
LEAST_FREE_BYTES = 200_000_000  # a fresh cluster takes 40 MB, its first write-ahead logs more than that again
START_SECONDS = 600  # replaying a long log after a crash takes minutes
GHOST_SECONDS = 120  # how long processes that a kill -9 left behind may take to end
STOP_SECONDS = 300  # a second, unless the machine is busy with other things
PORTS_TRIED = 5
SHARED_BUFFERS_MB = 2048  # a million pages with their links; or a quarter of the machine's memory, where that is less


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one installation, run on one cluster's folder by the account that may run them."""

    account: Account
    bin: Path
    major: int
    place: Path
    way: str
    handles: tuple[int, ...]

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def log(self) -> Path:
        return self.place / "server.log"

    def run(self, program: str, *arguments: str) -> tuple[bool, str]:
        """Run a program; whether it succeeded, and what it said."""
        return self.account.run([str(self.bin / program), *arguments], handles=self.handles)


@contextmanager
def programs_of(binaries: Binaries, home: Path, account: Account) -> Iterator[Programs]:
    """The programs of an installation, ready to be run on the cluster of `home` by an account."""
    place = private_folder(home, "postgres") / str(binaries.major)
    place.mkdir(mode=0o700, exist_ok=True)
    account.let_in(place)
    if not account.can_enter(binaries.bin):
        binaries = for_everybody(binaries)
    with account.way_into(place) as (way, handles):
        yield Programs(account, binaries.bin, binaries.major, place, way, handles)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server that works on a folder."""

    pid: int
    port: int
    is_ready: bool


def serving(data: Path) -> ServerFacts | None:
    """The server that works on this data folder, by its own note in it and by where the process is."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    # Process, folder, start, port, socket folder, address, shared memory, state: added one by one as it starts.
    if len(lines) < 4 or not works_in(int(lines[0]), data):
        return None
    return ServerFacts(int(lines[0]), int(lines[3]), len(lines) >= 8 and lines[7].strip() == "ready")


def works_in(pid: int, data: Path) -> bool:
    """Whether this process works in that folder; after a reboot its id may be anybody's."""
    try:
        return Path(psutil.Process(pid).cwd()) == data
    except psutil.Error:
        return False


def make_cluster(programs: Programs) -> None:
    """Make an empty cluster; the folder `data` is there whole, or not at all."""
    place = programs.place
    if shutil.disk_usage(place).free < LEAST_FREE_BYTES:
        raise StackFailed(disk_full(place))
    password = secrets.token_urlsafe(24)
    write_private(place / "password", password)
    making = place / "making"
    shutil.rmtree(making, ignore_errors=True)  # of a process that was killed here
    making.mkdir(mode=0o700)
    programs.account.own(making)
    for_initdb = place / "password.once"
    write_private(for_initdb, password)
    programs.account.own(for_initdb)
    # By default everybody on the machine could connect as anybody. From 17 on the locale is Postgres's own, so that
    # an update of the system cannot change the order of an index.
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    succeeded, said = programs.run(
        "initdb",
        f"--pgdata={programs.way}/making",
        f"--username={USER}",
        f"--pwfile={programs.way}/password.once",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        *(locale if programs.major >= 17 else ["--locale=C.UTF-8"]),
    )
    for_initdb.unlink()
    if not succeeded:
        raise StackFailed(why(said, place) or f"no database can be made in {place}: {last_line(said)}")
    making.rename(programs.data)


def options(*, durable: bool) -> dict[str, str]:
    """The settings of the server; all but the port."""
    quarter_mb = psutil.virtual_memory().total // 4 // 2**20
    chosen = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": "100",  # the Prefect server keeps 8 to 15 of them
        "shared_buffers": f"{min(SHARED_BUFFERS_MB, quarter_mb)}MB",
        "max_wal_size": "4GB",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_checkpoints": "off",
    }
    careless = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}
    return chosen if durable else chosen | careless


def launch(programs: Programs, chosen: dict[str, str]) -> None:
    """Start the server and wait until it answers; on another port where the recorded one is taken.

    A server that somebody else has started and that is still recovering is waited for.
    """
    programs.log.touch(mode=0o600)
    programs.account.own(programs.log)
    forget_reused_pid(programs.data)
    started = time.monotonic()
    tried: list[int] = []
    while True:
        port = next_port(programs.place, tried)
        said = try_to_start(programs, {**chosen, "port": str(port)})
        server = serving(programs.data)
        if server is not None and server.is_ready:
            write_private(programs.place / "port", str(server.port))
            return
        if "could not bind" in said and len(tried) < PORTS_TRIED:
            tried.append(port)
            continue
        # After kill -9 the old processes are still ending, in the process table or on the shared memory.
        in_the_way = '"postmaster.pid" already exists' in said or "shared memory block" in said
        patience = GHOST_SECONDS if server is None else START_SECONDS
        if not in_the_way or time.monotonic() - started > patience:
            raise StackFailed(why(said, programs.place) or f"{last_line(said)} (see {programs.log})")
        time.sleep(0.2)


def try_to_start(programs: Programs, chosen: dict[str, str]) -> str:
    """Start the server and wait until it answers or gives up; what it wrote into its log."""
    before = programs.log.stat().st_size
    settings = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
    files = (f"--pgdata={programs.way}/data", f"--log={programs.way}/server.log")
    _, said = programs.run("pg_ctl", *files, "--wait", f"--timeout={START_SECONDS}", f"--options={settings}", "start")
    with programs.log.open("rb") as log:
        log.seek(before)
        return log.read().decode(errors="replace") or said


def next_port(place: Path, tried: list[int]) -> int:
    """The port that clients know, or a free one where there is none or it did not work."""
    if not tried:
        with suppress(FileNotFoundError, ValueError):
            return int((place / "port").read_text(encoding="ascii"))
    return free_port(str(place), taken=tuple(tried))


def forget_reused_pid(data: Path) -> None:
    """Remove a postmaster.pid whose process is alive and another program: Postgres would take it for a server."""
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text(encoding="utf-8").splitlines()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return
    # Never while anything works in the folder: sessions of a killed server may still be writing.
    if psutil.pid_exists(pid) and not any(works_in(other, data) for other in psutil.pids()):
        pid_file.unlink()


def shut_down(programs: Programs) -> None:
    """Stop the running server, whoever is connected."""
    said = ""
    for mode in ("fast", "immediate"):  # the second where a session will not end; the next start recovers
        arguments = (f"--pgdata={programs.way}/data", f"--mode={mode}", "--wait", f"--timeout={STOP_SECONDS}")
        stopped, said = programs.run("pg_ctl", *arguments, "stop")
        if stopped or serving(programs.data) is None:
            return
    raise StackFailed(f"the embedded Postgres cannot be stopped: {last_line(said)}")


def why(said: str, place: Path) -> str | None:
    """A known failure in the words of a person."""
    if "No space left on device" in said:
        return disk_full(place)
    if "could not bind" in said:
        return "every port tried on 127.0.0.1 was taken at once by another program: run it again"
    return None


def disk_full(place: Path) -> str:
    free_mb = shutil.disk_usage(place).free // 10**6
    return (
        f"the disk of {place} is full ({free_mb} MB free, {LEAST_FREE_BYTES // 10**6} needed): free some space,"
        " or set RECRAWL_HOME to a folder on another disk"
    )


def last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()] or ["Postgres did not say why"]
    return next((line for line in reversed(lines) if "FATAL" in line or "error" in line), lines[-1])
