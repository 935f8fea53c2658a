"""What every test may ask for: a Postgres of its own, and a fresh migrated database in it."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import hypothesis
import psycopg
import pytest

from crawler.local.machine import Process, held, process
from crawler.local.postgres import ensure_postgres, running_postgres
from crawler.store.database import upgrade

# One folder per test run, handed to the xdist workers by the environment. Not pytest's own: that is closed to others,
# and the usual case of a folder that the server's account can reach should be the one that most tests see.
FOLDER = "RECRAWL_TESTS_FOLDER"
OTHER_SERVER = "RECRAWL_DATABASE_URL"
TEMPLATE = "recrawl_template"

# The same examples in every run, and as long as they take on a busy machine: a run that fails fails for everybody.
# HYPOTHESIS_PROFILE=default looks for new ones.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    clear_after_killed_runs()
    me = process(os.getpid())
    assert me is not None
    folder = Path(tempfile.mkdtemp(prefix="recrawl-tests-"))
    folder.chmod(0o755)
    (folder / "owner").write_text(f"{me.pid} {me.birth}", encoding="utf-8")
    os.environ[FOLDER] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and FOLDER in os.environ:
        clear(Path(os.environ.pop(FOLDER)))


def clear_after_killed_runs() -> None:
    for owner in Path(tempfile.gettempdir()).glob("recrawl-tests-*/owner"):
        if owner.stat().st_uid == os.geteuid():
            pid, birth = owner.read_text(encoding="utf-8").split()
            if not Process(int(pid), birth).is_running():
                clear(owner.parent)


def clear(folder: Path) -> None:
    cluster = running_postgres(folder)
    if cluster is not None:
        cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as the product does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A superuser's URL of the run's Postgres: its own, which keeps nothing safe and is gone afterwards, or the one
    that RECRAWL_DATABASE_URL names."""
    return os.environ.get(OTHER_SERVER) or ensure_postgres(Path(os.environ[FOLDER]), durable=False).url("postgres")


@pytest.fixture(scope="session")
def template_url(postgres_url: str) -> str:
    """A database that is migrated once and never written to, to be copied."""
    url = with_database(postgres_url, TEMPLATE)
    folder = Path(os.environ[FOLDER])
    with held(folder / "template.lock"):
        if not (folder / "template.ready").exists():
            execute(postgres_url, f"DROP DATABASE IF EXISTS {TEMPLATE} WITH (FORCE)", f"CREATE DATABASE {TEMPLATE}")
            upgrade(url)
            (folder / "template.ready").touch()
    return url


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    yield from new_database(postgres_url, "template0")


@pytest.fixture
def database_url(postgres_url: str, template_url: str) -> Iterator[str]:
    """A migrated database that no other test sees."""
    yield from new_database(postgres_url, urlsplit(template_url).path.removeprefix("/"))


def new_database(server: str, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield with_database(server, name)
    execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
