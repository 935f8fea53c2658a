"""Each command imports only the libraries that it needs, since each costs time and memory."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawler.cli import lazy
from tests.commands import environ
from tests.databases import TestDatabases
from tests.patience import PATIENCE_S

SCRIPT = """
import json, os, sys
own = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
from crawler.cli import main
code = main(sys.argv[1:])
os.write(own, json.dumps([code, sorted({name.partition('.')[0] for name in sys.modules})]).encode())
os._exit(0)
"""
# Libraries that take 5 ms or 2 MB, or more.
HEAVY = frozenset({
    *("httptools", "alembic", "apprise", "asyncpg", "cryptography", "fastapi", "google", "griffe", "h11"),
    *("httpx", "jinja2", "lxml", "numpy", "playwright", "prefect", "prometheus_client", "psutil"),
    *("psycopg", "pyarrow", "pydantic", "pypdfium2", "re2", "resiliparse", "rich", "selectolax", "simhash"),
    *("sqlalchemy", "sqlmodel", "starlette", "uvicorn", "warcio", "yaml"),
})  # fmt: skip
# Of every command that speaks with a database: settings and prices are arrays, rows hold texts and fingerprints.
BASE = frozenset({"numpy", "psutil", "psycopg", "pydantic", "rich", "selectolax", "simhash"})
CASES: dict[str, set[str]] = {
    "plugins": set(),
    "status": set(),
    "health": set(),
    "ui": set(),
    "worker": set(),
    "deploy --wait 0": set(),
    "server": set(),
    "db url": set(),
    "db sql SELECT": set(),
    "db check": set(),
    "db upgrade": {"alembic", "sqlalchemy", "sqlmodel"},
    "domains list": set(),
    "domains add b.test --offline": {"httptools"},
    "rules list a.test": set(),
    "refresh a.test": set(),
    "pages a.test": set(),
    "report": set(),
    "plan a.test": set(),
    "changes": set(),
    "explain http://a.test/": set(),
    "export a.test": set(),
    "export a.test --format warc": {"warcio"},
    "sync index.db": set(),
    "crawl --due": {"httptools"},
}


@pytest.fixture(scope="module")
def imported(
    databases: TestDatabases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[int, set[str]]]]:
    """Return the exit code of each command, and the heavy libraries that it imported."""
    home = tmp_path_factory.mktemp("imports")
    with databases.lend() as url:

        def of_command(words: str) -> tuple[int, set[str]]:
            arguments = ["SELECT 1" if word == "SELECT" else word for word in words.split()]
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, *arguments],
                env=environ(url, home / "home"),
                cwd=home,
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE_S,
            )
            code, modules = json.loads(done.stdout)
            return code, set(modules) & HEAVY

        of_command("domains add a.test --offline")
        with ThreadPoolExecutor(2) as pool:
            yield dict(zip(CASES, pool.map(of_command, CASES), strict=True))


def test_a_lazy_module_is_the_one_that_the_type_checker_reads() -> None:
    tree = ast.parse(Path(lazy.__file__).read_text(encoding="utf-8"))
    named = [
        (node.module, each.name)
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]
    assert len(named) > 10
    assert [getattr(lazy, name).__name__ for _, name in named] == [f"{package}.{name}" for package, name in named]


def test_help_starts_without_an_event_loop(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "crawler", "--help"],
        env=environ(None, tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "crawler.cli.session" in imported  # imports asyncio, which takes 30 ms
    assert not imported & {"asyncio", "ssl"}


@pytest.mark.soak
def test_a_command_imports_nothing_heavy_that_it_does_not_need(imported: dict[str, tuple[int, set[str]]]) -> None:
    assert {code for code, _ in imported.values()} <= {0, 1}
    assert {words: found - BASE for words, (_, found) in imported.items()} == CASES
