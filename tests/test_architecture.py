"""Which room imports which, through which door each third-party package enters, and what core must not do."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("crawler", "flows", "models", "migrations", "deployments", "tests", "benchmarks", "labs", "scripts")

PYTHON_PAGE = ROOT / "docs" / "python.md"

# Core's rooms, from the bottom to the top: each may use what stands before it.
CORE = tuple(
    f"crawler.core.{name}"
    for name in (
        "http",
        "page",
        "opic",
        "freshness",
        "budget",
        "novelty",
        "noise",
        "change",
        "soft_errors",
        "rendering",
        "visit",
        "validators",
        "alert",
    )
)
# The store's rooms, likewise. They stand on core, on the models and on the three files beside them.
STORE = tuple(
    f"crawler.store.{name}"
    for name in ("domains", "claim", "learned", "hand_out", "record", "report", "subscriptions", "plan", "retention")
)
STORE_FILES = ("crawler.store.database", "crawler.store.columns", "crawler.store.partitions")
# What commands do, likewise: a room for each kind of question.
ACTIONS = tuple(
    f"crawler.cli.actions.{name}" for name in ("upkeep", "domains", "explain", "pages", "reports", "delivery", "crawls")
)
SHELL = (
    "crawler.cli.charts",
    *(f"crawler.cli.{path.stem}" for path in (ROOT / "crawler/cli").glob("*.py") if path.stem != "__init__"),
)
WALKS = ("crawler.core", "crawler.fetch", "crawler.store", "crawler.settings", "crawler.clock", "crawler.plugins")

# The rooms that a command asks.
ASKED = (
    *WALKS,
    "crawler.app",
    "crawler.engine",
    "crawler.export",
    "crawler.notify",
    "crawler.register",
    "crawler.planner",
    "crawler.prune",
    "crawler.runtime",
    "crawler.json_lines",
    "crawler.times",
)

# Who may import whom, by the longest prefix that fits; a room may always import itself, and everybody errors.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "crawler": (),
    "crawler.errors": (),
    "crawler.clock": (),
    "crawler.times": (),
    **{room: CORE[:n] for n, room in enumerate(CORE)},
    "crawler.core.page_rules": CORE,
    "crawler.core.setting": (),
    "crawler.core.retention": (),
    "crawler.core.domain_settings": (
        *CORE,
        "crawler.core.page_rules",
        "crawler.core.setting",
        "crawler.core.retention",
    ),
    "crawler.core.domain": (*CORE, "crawler.core.page_rules", "crawler.core.domain_settings"),
    "crawler.json_lines": (),
    "crawler.secret_files": (),
    "crawler.settings": ("crawler.core", "crawler.secret_files", "crawler.times"),
    "crawler.fetch": ("crawler.core",),
    "crawler.plugins": ("crawler.core",),
    "crawler.store.database": ("crawler.store.migrate",),  # which it imports when a migration is needed
    "crawler.store.migrate": ("crawler.store.database", "models", "migrations"),
    "crawler.store.columns": ("crawler.core", "crawler.store.database"),
    "crawler.store.partitions": ("crawler.store.database",),
    **{room: ("crawler.core", "models", *STORE_FILES, *STORE[:n]) for n, room in enumerate(STORE)},
    "crawler.register": (*WALKS, "crawler.engine", "crawler.times"),
    "crawler.planner": WALKS,
    "crawler.prune": ("crawler.core", "crawler.store"),
    "crawler.engine": WALKS,
    "crawler.export": ("crawler.core", "crawler.store"),
    "crawler.notify": (*WALKS, "crawler.engine"),
    "crawler.runtime": ("crawler.core", "crawler.store", "crawler.secret_files", "crawler.settings"),
    "crawler.runtime.metrics": (
        "crawler.core",
        "crawler.engine",
        "crawler.runtime",
        "crawler.settings",
        "crawler.store",
    ),
    "crawler.runtime.service": (
        "crawler.core",
        "crawler.runtime",
        "crawler.runtime.metrics",
        "crawler.settings",
        "crawler.store",
    ),
    "crawler.app": ("crawler.core", "crawler.runtime", "crawler.settings", "crawler.store"),
    "crawler.cli": ASKED,
    **{room: (*ASKED, *SHELL, *ACTIONS[:n]) for n, room in enumerate(ACTIONS)},
    # What a command calls stands below the pages, and the commands above them.
    "crawler.cli.commands": (
        *WALKS,
        "crawler.engine",
        "crawler.export",
        "crawler.notify",
        "crawler.register",
        "crawler.planner",
        "crawler.runtime",
        "crawler.times",
        "crawler.cli",
        "crawler.mcp",
        "crawler.server",
    ),
    # What other programs import stands beside the pages.
    "crawler.api": (
        *WALKS,
        "crawler.engine",
        "crawler.export",
        "crawler.register",
        "crawler.runtime",
        "crawler.cli.actions",
        "crawler.cli.settings_options",
        "crawler.cli.which_page",
    ),
    "crawler.mcp": ("crawler.api",),
    "crawler.server": (
        *WALKS,
        "crawler.engine",
        "crawler.export",
        "crawler.notify",
        "crawler.register",
        "crawler.planner",
        "crawler.runtime",
        "crawler.runtime.metrics",
        "crawler.times",
        "crawler.cli.actions",
        "crawler.cli.output",
        "crawler.cli.which_page",
        "crawler.cli.change_kinds",
        "crawler.cli.charts",
        "crawler.cli.reasons",
        "crawler.cli.session",
        "crawler.cli.settings_options",
        "crawler.cli.values",
        "crawler.cli.waiting",
    ),
    "crawler.__main__": ("crawler.cli",),
    "models": ("crawler.core",),
    "migrations": ("models", "crawler.core"),
    "flows": ("crawler",),
    "deployments": (),
    "benchmarks": ("crawler", "models", "flows", "labs", "tests"),
    "labs": ("crawler", "flows", "benchmarks.deploys", "benchmarks.harness"),
    "scripts": (),
}

# Through which files a third-party package enters; what is not named here may not be imported.
DOORS: dict[str, tuple[str, ...]] = {
    "ada_url": ("crawler/core/http/urls.py",),
    "anyio": ("crawler/api/opening.py", "crawler/api/blocking.py"),
    "cryptography": ("crawler/fetch/browser/certificate.py",),
    "html_to_markdown": ("crawler/export/markdown.py",),
    "pyarrow": ("crawler/export/parquet.py",),
    "warcio": ("crawler/export/warc.py",),
    "h11": ("crawler/fetch/browser/proxy.py",),
    "aiohttp": ("crawler/fetch/",),
    "alembic": ("migrations/", "crawler/store/"),
    "apprise": ("crawler/notify/services.py",),
    "jinja2": ("crawler/server/ui/shown.py",),
    "lxml": ("crawler/core/page/xpath.py", "crawler/core/page/list_xml.py", "labs/replay/history.py"),
    "mcp": ("crawler/mcp/",),
    "markupsafe": ("crawler/server/",),
    "numpy": ("crawler/core/", "labs/"),
    "playwright": (
        "crawler/fetch/browser/browser.py",
        "crawler/fetch/browser/launch.py",
        "benchmarks/pages/rendering.py",
    ),
    "prefect": ("flows/", "crawler/runtime/"),
    "prometheus_client": ("crawler/runtime/metrics/",),
    "psutil": ("crawler/runtime/",),
    "psycopg": ("crawler/store/", "crawler/export/postgres_index.py"),
    "psycopg_pool": ("crawler/store/",),
    "publicsuffixlist": ("crawler/core/http/urls.py",),
    "pydantic": ("crawler/settings.py", "crawler/api/opening.py", "flows/"),
    "pydantic_settings": ("crawler/settings.py",),
    "pypdfium2": ("crawler/core/page/pdf.py",),
    "re2": ("crawler/core/http/expressions.py",),
    "requests": ("crawler/notify/services.py",),  # by which apprise sends
    "resiliparse": ("crawler/core/page/charset.py",),
    "rich": ("crawler/cli/",),
    "selectolax": (
        "crawler/core/page/html.py",
        "crawler/core/page/forms.py",
        "crawler/core/page/content.py",
        "crawler/core/page/blocks.py",
        "crawler/core/page/outline.py",
        "crawler/core/page/pick.py",
        "crawler/core/page/script_signs.py",
        "crawler/core/page/selectors.py",
        "crawler/core/page/xpath.py",
    ),
    "simhash": ("crawler/core/page/fingerprint.py",),
    "sqlalchemy": ("models/", "crawler/store/", "migrations/"),
    "sqlmodel": ("models/", "crawler/store/", "migrations/"),
    "starlette": ("crawler/server/app.py", "crawler/server/api/"),
    "typer": ("crawler/cli/",),
    "uvicorn": ("crawler/runtime/prefect/program.py", "crawler/server/connections.py", "crawler/server/server.py"),
    "xxhash": ("crawler/core/page/fingerprint.py",),
    "yaml": ("crawler/runtime/", "crawler/export/markdown.py"),
    "yarl": ("crawler/fetch/http.py", "crawler/fetch/cookies.py", "crawler/fetch/webhook.py"),
    "zstandard": ("crawler/store/",),
}

# What core must not so much as mention: it is given its time, its settings and its data.
NOT_IN_CORE_NAMES = {"print", "open", "input"}
NOT_IN_CORE_CALLS = {"datetime.now", "datetime.utcnow", "date.today", "time.time", "time.monotonic", "time.sleep"}
NOT_IN_CORE_IMPORTS = {"logging", "asyncio", "socket", "threading", "subprocess", "os", "time", "random", "secrets"}


MOST_PARAMETERS = 8
# Here a function's parameters are the options of a command: typer reads them.
COMMANDS = ("crawler/cli/commands/",)


@cache
def sources() -> tuple[Path, ...]:
    rooms = (path for name in OURS if name != "tests" for path in (ROOT / name).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in rooms))


@cache
def product_sources() -> tuple[Path, ...]:
    return tuple(path for path in sources() if path.parts[0] not in {"benchmarks", "labs", "scripts"})


@cache
def files_of_tests() -> tuple[Path, ...]:
    return tuple(sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, wherever in it; `from a import b` gives a.b where that is a module of ours."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the direction"
            assert node.module is not None
            yield from (submodule(node.module, name.name) for name in node.names)


@cache
def named(path: Path) -> tuple[tuple[str, str], ...]:
    """Each name that a file imports from a module of ours, with that module."""
    return tuple(
        (node.module, name.name)
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] in OURS
        for name in node.names
    )


def taken_from(door: str, path: Path) -> Iterator[str]:
    """What a file takes from a room: by name, or as an attribute of the room itself."""
    package, _, short = door.rpartition(".")
    for module, name in named(path):
        if module == door:
            yield name
        elif is_within(module, door):
            yield module.removeprefix(f"{door}.").split(".")[0]
    if (package, short) in named(path):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == short:
                yield node.attr


@cache
def doors() -> frozenset[str]:
    """The rooms that say in `__all__` what others may take."""
    inits = (path for path in sources() if path.name == "__init__.py" and path.parts[0] == "crawler")
    return frozenset(module_name(path) for path in inits if exported(module_name(path)))


def doors_of(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (door for n in range(1, len(parts) + 1) if (door := ".".join(parts[:n])) in doors())


@cache
def exported(door: str) -> frozenset[str]:
    for node in tree(init(door)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def init(package: str) -> Path:
    return Path(*package.split("."), "__init__.py")


@cache
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
    assert {Path("crawler/errors.py"), Path("scripts/bootstrap.py")} <= set(sources())


def test_imports_go_one_way() -> None:
    offenses = [
        f"{path} may not import {name}; its room may import {MAY_IMPORT[room(module_name(path))]}"
        for path in sources()
        for name in imports(path)
        if name.split(".")[0] in OURS and not may(module_name(path), name)
    ]
    assert offenses == []


def test_nobody_reaches_past_a_rooms_door() -> None:
    offenses = []
    taken = [(path, module, name) for path in product_sources() for module, name in named(path)]
    for path, module, name in taken:
        for door in list(doors_of(f"{module}.{name}"))[-1:]:  # a room within a room has a door of its own
            if is_within(module_name(path), door) or module == door.rpartition(".")[0]:
                continue  # from inside, or the room as a whole
            offered = exported(door)
            if module == door:
                if name not in offered:
                    offenses.append(f"{path} takes {name} from {door}, which does not offer it")
            elif module.removeprefix(f"{door}.").split(".")[0] not in offered:
                offenses.append(f"{path} reaches past the door of {door} into {module}")
    assert offenses == []


def test_a_door_says_what_its_room_is_for() -> None:
    said = {door: ast.get_docstring(tree(init(door))) or "" for door in doors()}
    offenses = sorted(door for door, words in said.items() if len(words.split()) < 20)
    assert offenses == [], "what it is for, its main function, what it may use"


def test_a_door_offers_only_what_is_taken() -> None:
    taken: dict[str, set[str]] = {door: set() for door in doors()}
    for path in (*sources(), *files_of_tests()):
        for door, names in taken.items():
            if not is_within(module_name(path), door):
                names.update(taken_from(door, path))
    # Other programs take what its page of the documentation names.
    taken["crawler.api"].update(re.findall(r"`([A-Za-z_]+)`", PYTHON_PAGE.read_text(encoding="utf-8")))
    unused = {door: sorted(exported(door) - names) for door, names in taken.items()}
    assert {door: names for door, names in unused.items() if names} == {}


def test_each_package_has_one_door() -> None:
    known = {*sys.stdlib_module_names, "_typeshed", *OURS}  # the second is the type checker's, and never imported
    offenses = [
        f"{path} imports {package}, which enters by {DOORS.get(package, 'no door yet')}"
        for path in product_sources()
        for package in {name.split(".")[0] for name in imports(path)} - known
        if not path.as_posix().startswith(DOORS.get(package, ()))
    ]
    assert offenses == []


def test_more_than_eight_parameters_are_a_value_without_a_name() -> None:
    offenses = []
    for path in sources():
        if path.parts[0] not in {"crawler", "flows", "models"} or path.as_posix().startswith(COMMANDS):
            continue
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = [each.arg for each in given if each.arg not in {"self", "cls"}]
                if len(names) > MOST_PARAMETERS:
                    offenses.append(f"{path}:{node.lineno} {node.name}({', '.join(names)})")
    assert offenses == []


def test_core_only_thinks() -> None:
    offenses = []
    for path in (each for each in sources() if each.parts[:2] == ("crawler", "core")):
        imported = NOT_IN_CORE_IMPORTS & {name.split(".")[0] for name in imports(path)}
        offenses += [f"{path} imports {name}" for name in sorted(imported)]
        for node in nodes(path):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
                offenses.append(f"{place}: {type(node).__name__}")
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in NOT_IN_CORE_NAMES or any(called.endswith(name) for name in NOT_IN_CORE_CALLS):
                    offenses.append(f"{place}: {called}")
    assert offenses == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("crawler.fetch.http", "crawler.store.domains.domains", False),
        ("crawler.store.domains.domains", "crawler.fetch.http", False),
        ("crawler.core.opic.opic", "models.page", False),
        ("crawler.core.opic.opic", "crawler.core.http.urls", True),
        ("crawler.core.opic.opic", "crawler.settings", False),
        ("crawler.engine.lease", "crawler.store.record.record", True),
        ("crawler.engine.lease", "flows.crawl", False),
        ("flows.crawl", "crawler.engine.lease", True),
        ("crawler.store.migrate", "models", True),
        ("models.page", "crawler.core.http.urls", True),
        ("models.page", "crawler.store", False),
        ("crawler.utils", "crawler.core.http.urls", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert may(importer, imported) is allowed


def test_bootstrap_needs_only_the_standard_library() -> None:
    assert {name.split(".")[0] for name in imports(Path("scripts/bootstrap.py"))} <= sys.stdlib_module_names
