"""What every test may ask for: a Postgres of its own, and a fresh migrated database in it."""

import fcntl
import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from crawler.runtime.machine import find_process, hold_lock, try_hold_lock
from crawler.runtime.postgres.cluster import ensure_postgres
from crawler.store import database
from crawler.store.database import MIGRATIONS, upgrade_schema
from tests.commands import Recrawl, Site, in_this_process, serving
from tests.databases import TestDatabases, empty_database, execute, with_database
from tests.watchdog import PYTESTS, RUN, end_run

OTHER_SERVER = "RECRAWL_DATABASE_URL"
TEMPLATE = "recrawl_template"
RUN_PREFIX = "recrawl-tests-"
MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
MEMORY_BYTES = 4 << 30  # a run takes up to .5 GB
MAX_ID = 60  # characters of a value in the id of a test
LATER = """
from alembic import op
from sqlalchemy import BigInteger, Column, MetaData, Table
from models.schema import list_table_statements

revision = "9000"
down_revision = "0001"


def upgrade():
    columns = [Column("domain_id", BigInteger, primary_key=True, autoincrement=False)]
    table = Table("later", MetaData(), *columns, postgresql_partition_by="HASH (domain_id)")
    for statement in list_table_statements(table, op.get_context().config.attributes["partitions"]):
        op.execute(statement)
"""
WATCHDOG = pytest.StashKey[subprocess.Popen[str]]()

# The same examples in every run, and as long as they take on a busy machine: a run that fails fails for everybody.
# HYPOTHESIS_PROFILE=default looks for new ones.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


# Most tests count each request to their servers. Those about sitemaps ask for them in the usual places, too.
os.environ["RECRAWL_PROBE_SITEMAPS"] = "false"
# The last command of a test stops its Postgres.
os.environ["RECRAWL_POSTGRES_IDLE_TIME"] = "0"


@pytest.hookimpl(trylast=True)  # after pytest has settled where its own temporary folders go
def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs the tests in the background lets them ignore Ctrl-C, and with them all that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        return
    clear_after_killed_runs()
    # One folder per test run, handed to all that it starts by the environment. Not pytest's own: that is closed to
    # others, and the usual case of a folder that the server's account can reach should be the one that most tests see.
    folder = Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir=choose_runs_folder())).resolve()
    folder.chmod(0o755)
    (folder / PYTESTS).symlink_to(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    config.stash[WATCHDOG] = watch(folder)
    os.environ[RUN] = str(folder)
    # What tests and all that they start put into temporary folders goes with the run's.
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    os.environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its argument, so that an id can be read and typed."""
    return argname if isinstance(val, str | bytes) and len(val) > MAX_ID else None


def pytest_collection_finish() -> None:
    """Exclude the modules of all tests from garbage collection, which would scan them again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    watchdog = config.stash.get(WATCHDOG, None)
    if watchdog is not None:
        _, complaint = watchdog.communicate()
        assert watchdog.returncode == 0, complaint


def watch(folder: Path) -> subprocess.Popen[str]:
    """Have this process's end watched for by another one, and the run's folder cleared then."""
    me = find_process(os.getpid())
    assert me is not None
    # Held by both, and free when both are gone.
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.watchdog", str(me.pid), me.start_id, folder],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[lock],
        start_new_session=True,  # a terminal interrupts the whole group
    )


def choose_runs_folder() -> Path:
    """Return where runs keep their folders: in memory if there is room, for the files of Postgres."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        status = os.statvfs(MEMORY)
        if status.f_bavail * status.f_frsize > MEMORY_BYTES and not status.f_flag & os.ST_NOEXEC:
            return MEMORY
    return Path(tempfile.gettempdir())


def clear_after_killed_runs() -> None:
    """Clear away after runs that were killed together with their watchdogs, as by a reset of the machine."""
    for lock in choose_runs_folder().glob(f"{RUN_PREFIX}*/lock"):
        if lock.stat().st_uid == os.geteuid():
            with try_hold_lock(lock) as is_over:
                if is_over:
                    end_run(lock.parent.resolve(), spare=os.getpid(), settled_seconds=0.5)


@pytest.fixture
def told() -> Iterator[list[logging.LogRecord]]:
    """What recrawl tells in its log meanwhile; the command, which other tests run here, keeps it from pytest's own."""
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keeping = Keeping()
    logger = logging.getLogger("recrawl")
    logger.addHandler(keeping)
    yield records
    logger.removeHandler(keeping)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as the product does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A superuser's URL of the run's Postgres: its own, which keeps nothing safe and is gone afterwards, or the one
    that RECRAWL_DATABASE_URL names."""
    return os.environ.get(OTHER_SERVER) or ensure_postgres(Path(os.environ[RUN]), durable=False).build_url("postgres")


@pytest.fixture(scope="session")
def template_url(postgres_url: str) -> str:
    """A database that is migrated once and never written to, to be copied."""
    url = with_database(postgres_url, TEMPLATE)
    folder = Path(os.environ[RUN])
    with hold_lock(folder / "template.lock"):
        if not (folder / "template.ready").exists():
            execute(postgres_url, f"DROP DATABASE IF EXISTS {TEMPLATE} WITH (FORCE)", f"CREATE DATABASE {TEMPLATE}")
            upgrade_schema(url)
            (folder / "template.ready").touch()
    return url


@pytest.fixture(scope="session")
def databases(postgres_url: str, template_url: str) -> Iterator[TestDatabases]:
    """Return the migrated databases of this process, which its tests use one after the other."""
    lent = TestDatabases(postgres_url, TEMPLATE)
    yield lent
    lent.close()


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    with empty_database(postgres_url) as url:
        yield url


@pytest.fixture
def database_url(databases: TestDatabases) -> Iterator[str]:
    """Return the URL of a migrated database that equals a new one, and that no other test uses at the same time."""
    with databases.lend() as url:
        yield url


@pytest.fixture
def later_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have one migration more than there is, as a later recrawl has, for which our databases are older.

    It makes a table that is partitioned by the hash of its domain. Gives the file, for a test to change.
    """
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "versions" / "9000_later.py"
    file.write_text(LATER)
    monkeypatch.setattr(database, "MIGRATIONS", folder)
    return file


@pytest.fixture(scope="module")
def shared_database_url(databases: TestDatabases) -> Iterator[str]:
    """Return the URL of a migrated database that a module's tests share: its fixtures fill it, its tests only read."""
    with databases.lend() as url:
        yield url


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the RECRAWL_HOME that the module's tests share."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def read(shared_database_url: str, shared_home: Path) -> Iterator[Recrawl]:
    """Return the command on the database that the module's tests share, for tests without a `recrawl` of their own."""
    with in_this_process(shared_database_url, shared_home) as run:
        yield run


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    """Return a site of three pages that link to each other, which the module's tests share."""
    with serving() as found:
        yield found


@pytest.fixture
def recrawl(database_url: str, tmp_path: Path) -> Iterator[Recrawl]:
    """The command, run in this process on a database of its own."""
    with in_this_process(database_url, tmp_path) as run:
        yield run


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of three pages that link to each other."""
    with serving() as found:
        yield found
