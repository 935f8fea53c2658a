"""Which room imports which, through which door each third-party package enters, and what core must not do."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("crawler", "flows", "models", "migrations", "deployments", "tests", "benchmarks")

# What walks a lease through the rooms: one room of its own, in the files that stand beside the rooms.
CORRIDOR = tuple(
    f"crawler.{name}"
    for name in (
        "again",
        "allowance",
        "asker",
        "audit",
        "breaker",
        "clock",
        "crawl",
        "forecast",
        "gate",
        "glimpse",
        "looker",
        "naming",
        "patience",
        "plan",
        "probe",
        "reader",
        "readers",
        "registration",
        "robots_txt",
        "roots",
        "shift",
        "supply",
        "tally",
        "usual",
        "walker",
    )
)

# Who may import whom, by the longest prefix that fits; a room may always import itself, and everybody errors.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "crawler": (),
    "crawler.errors": (),
    "crawler.bootstrap": (),
    "crawler.core": (),
    "crawler.settings": ("crawler.core", "crawler.spans"),
    "crawler.instants": (),
    "crawler.spans": (),
    "crawler.web": ("crawler.core",),
    "crawler.store": ("crawler.core", "models", "migrations"),
    "crawler.lab": ("crawler.core",),
    "crawler.demo.site": ("crawler.core",),
    "crawler.demo.server": ("crawler.core", "crawler.demo.site"),
    "crawler.demo": ("crawler", "flows"),
    **dict.fromkeys(CORRIDOR, ("crawler.core", "crawler.web", "crawler.store", "crawler.settings", *CORRIDOR)),
    "crawler.local": ("crawler.core", "crawler.store", "crawler.settings"),
    "crawler.cli": ("crawler", "flows"),
    "crawler.__main__": ("crawler.cli",),
    "models": ("crawler.core",),
    "migrations": ("models", "crawler.core"),
    "flows": ("crawler",),
    "deployments": (),
    "benchmarks": ("crawler", "models", "flows", "benchmarks", "tests"),
}

# Through which files a third-party package enters; what is not named here may not be imported.
DOORS: dict[str, tuple[str, ...]] = {
    "ada_url": ("crawler/core/http/urls.py",),
    "aiohttp": ("crawler/web/", "crawler/demo/server.py"),
    "alembic": ("migrations/", "crawler/store/"),
    "lxml": ("crawler/core/page/xpath.py",),
    "numpy": ("crawler/core/", "crawler/lab/"),
    "playwright": ("crawler/web/browser.py",),
    "prefect": ("flows/", "crawler/local/"),
    "protego": ("crawler/core/http/robots.py",),
    "psutil": ("crawler/local/",),
    "psycopg": ("crawler/store/",),
    "psycopg_pool": ("crawler/store/",),
    "publicsuffixlist": ("crawler/core/http/urls.py",),
    "pydantic": ("crawler/settings.py", "flows/"),
    "pydantic_settings": ("crawler/settings.py",),
    "pypdfium2": ("crawler/core/page/pdf.py",),
    "resiliparse": ("crawler/core/page/charset.py",),
    "rich": ("crawler/cli",),
    "selectolax": (
        "crawler/core/page/html.py",
        "crawler/core/page/content.py",
        "crawler/core/page/blocks.py",
        "crawler/core/page/outline.py",
        "crawler/core/page/selectors.py",
        "crawler/core/page/xpath.py",
    ),
    "simhash": ("crawler/core/page/fingerprint.py",),
    "sqlalchemy": ("models/", "crawler/store/", "migrations/"),
    "sqlmodel": ("models/", "crawler/store/", "migrations/"),
    "typer": ("crawler/cli",),
    "xxhash": ("crawler/core/page/fingerprint.py",),
    "yaml": ("crawler/local/",),
    "yarl": ("crawler/web/http.py",),
    "zstandard": ("crawler/store/",),
}

# What core must not so much as mention: it is given its time, its settings and its data.
NOT_IN_CORE_NAMES = {"print", "open", "input"}
NOT_IN_CORE_CALLS = {"datetime.now", "datetime.utcnow", "date.today", "time.time", "time.monotonic", "time.sleep"}
NOT_IN_CORE_IMPORTS = {"logging", "asyncio", "socket", "threading", "subprocess", "os", "time", "random", "secrets"}


@cache
def sources() -> tuple[Path, ...]:
    rooms = (path for name in OURS if name != "tests" for path in (ROOT / name).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in rooms))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it; `from a import b` gives a.b where that is a module of ours."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the direction"
            assert node.module is not None
            yield from (submodule(node.module, name.name) for name in node.names)


def submodule(package: str, name: str) -> str:
    place = ROOT.joinpath(*package.split("."), name)
    return f"{package}.{name}" if place.is_dir() or place.with_suffix(".py").is_file() else package


def room(module: str) -> str:
    return max((name for name in MAY_IMPORT if is_within(module, name)), key=len)


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def may(importer: str, imported: str) -> bool:
    if imported in {"crawler", "crawler.errors"}:
        return True
    mine = room(importer)
    # What stands in no room of its own, as a stray crawler/utils.py would, is "crawler" and may import nothing of ours.
    granted = MAY_IMPORT[mine] if mine == "crawler" else (mine, *MAY_IMPORT[mine])
    return any(is_within(imported, package) for package in granted)


def test_there_is_something_to_read() -> None:
    assert {Path("crawler/errors.py"), Path("crawler/bootstrap.py")} <= set(sources())


@pytest.mark.parametrize("path", sources(), ids=str)
def test_imports_go_one_way(path: Path) -> None:
    importer = module_name(path)
    wrong = [name for name in imports(path) if name.split(".")[0] in OURS and not may(importer, name)]
    assert not wrong, f"{path} may not import {wrong}; its room may import {MAY_IMPORT[room(importer)]}"


@pytest.mark.parametrize("path", [p for p in sources() if p.parts[0] != "benchmarks"], ids=str)
def test_each_package_has_one_door(path: Path) -> None:
    known = {*sys.stdlib_module_names, "_typeshed", *OURS}  # the second is the type checker's, and never imported
    for package in {name.split(".")[0] for name in imports(path)} - known:
        doors = DOORS.get(package)
        assert doors is not None, f"{path} imports {package}, which has no door yet"
        assert any(path.as_posix().startswith(door) for door in doors), f"{package} enters by {doors}, not by {path}"


@pytest.mark.parametrize("path", [p for p in sources() if p.parts[:2] == ("crawler", "core")], ids=str)
def test_core_only_thinks(path: Path) -> None:
    assert not NOT_IN_CORE_IMPORTS & {name.split(".")[0] for name in imports(path)}
    for node in ast.walk(tree(path)):
        line = getattr(node, "lineno", 0)
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith), f"{path}:{line}"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in NOT_IN_CORE_NAMES, f"{path}:{line}: {called}"
            assert not any(called.endswith(name) for name in NOT_IN_CORE_CALLS), f"{path}:{line}: {called}"


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("crawler.web.http", "crawler.store.domains.domains", False),
        ("crawler.store.domains.domains", "crawler.web.http", False),
        ("crawler.core.cash.opic", "models.page", False),
        ("crawler.core.cash.opic", "crawler.core.http.urls", True),
        ("crawler.core.cash.opic", "crawler.settings", False),
        ("crawler.lab.world", "crawler.store", False),
        ("crawler.crawl.lease", "crawler.store.record.record", True),
        ("crawler.crawl.lease", "flows.crawl", False),
        ("flows.crawl", "crawler.crawl.lease", True),
        ("crawler.store.database", "models", True),
        ("models.page", "crawler.core.http.urls", True),
        ("models.page", "crawler.store", False),
        ("crawler.utils", "crawler.core.http.urls", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert may(importer, imported) is allowed


def test_bootstrap_needs_only_the_standard_library() -> None:
    assert {name.split(".")[0] for name in imports(Path("crawler/bootstrap.py"))} <= sys.stdlib_module_names
