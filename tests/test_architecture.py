"""How third-party packages enter, what core must not do, and how much a function may be given.

Which package of ours imports which is a contract of import-linter (pyproject.toml), checked by `make check`.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from crawler.cli.app import COMMAND_LOCATIONS

ROOT = Path(__file__).parent.parent
PRODUCT = ("crawler", "flows", "models", "migrations", "deployments")

# The files that may import a third-party package; what is not named here may not be imported.
ENTRANCES: dict[str, tuple[str, ...]] = {
    "ada_url": ("crawler/core/http/urls.py",),
    "backports": ("crawler/store/compression.py",),
    "anyio": ("crawler/app/python_api/app.py",),
    "cryptography": ("crawler/fetch/browser/proxy.py",),
    "pyarrow": ("crawler/export/parquet.py",),
    "warcio": ("crawler/export/warc.py",),
    "fastapi": ("crawler/server/api/",),
    "h11": ("crawler/fetch/browser/proxy.py",),
    "httptools": ("crawler/fetch/connection.py",),
    "aiohappyeyeballs": ("crawler/fetch/pool.py",),
    "alembic": ("migrations/", "crawler/store/"),
    "apprise": ("crawler/notify/services.py",),
    "jinja2": ("crawler/server/ui/templating.py",),
    "lxml": ("crawler/core/page/xpath.py", "crawler/core/page/lists/sitemap_and_feed_xml.py", "labs/replay/history.py"),
    "mcp": ("crawler/mcp/",),
    "markupsafe": ("crawler/server/",),
    "msgspec": ("crawler/",),
    "numpy": ("crawler/core/", "labs/"),
    "playwright": (
        "crawler/fetch/browser/browser.py",
        "crawler/fetch/browser/process.py",
        "benchmarks/pages/rendering.py",
    ),
    "prefect": ("flows/", "crawler/runtime/"),
    "prometheus_client": ("crawler/runtime/metrics/",),
    "psutil": ("crawler/runtime/", "crawler/app/crawl.py"),
    "psycopg": ("crawler/store/", "crawler/export/", "crawler/runtime/postgres/cluster.py"),
    "psycopg_pool": ("crawler/store/",),
    "publicsuffixlist": ("crawler/core/http/urls.py",),
    "pydantic": (
        *("crawler/settings.py", "crawler/app/python_api/app.py", "crawler/server/api/", "crawler/store/rows.py"),
        *("crawler/runtime/keys/", "crawler/runtime/prefect/api.py"),
        "flows/",
    ),
    "pypdfium2": ("crawler/core/page/pdf.py",),
    "re2": ("crawler/core/http/expressions.py",),
    "requests": ("crawler/notify/services.py",),  # by which apprise sends
    "resiliparse": ("crawler/core/page/charset.py",),
    "rich": ("crawler/cli/",),
    "selectolax": (
        "crawler/core/page/html.py",
        "crawler/core/page/forms.py",
        "crawler/core/page/scan.py",
        "crawler/core/page/compiled_scan.py",
        "crawler/core/page/selector_finder.py",
        "crawler/core/page/selectors.py",
        "crawler/core/page/xpath.py",
    ),
    "simhash": ("crawler/core/page/fingerprint.py",),
    "sqlalchemy": ("models/", "crawler/store/", "migrations/"),
    "sqlmodel": ("models/", "crawler/store/", "migrations/"),
    "starlette": (
        "crawler/server/",
        "crawler/runtime/host_check.py",
    ),
    "typer": ("crawler/cli/",),
    "uvicorn": ("crawler/runtime/prefect/program.py", "crawler/server/connections.py", "crawler/server/server.py"),
    "xxhash": ("crawler/core/page/fingerprint.py", "crawler/core/page/text_words.py"),
    "yaml": ("crawler/runtime/", "crawler/export/markdown.py"),
    "compression": ("crawler/store/compression.py",),
}

# Core is given its time, its settings and its data. Its imports are a contract of import-linter.
NOT_IN_CORE = {"print", "open", "input"}
CLOCKS = ("datetime.now", "datetime.utcnow", "date.today", "time.time", "time.monotonic", "time.sleep")

MAX_PARAMETERS = 8
# Here parameters are the options of a command: typer reads them.
COMMANDS = {f"crawler/cli/{place.module.replace('.', '/')}.py" for place in COMMAND_LOCATIONS.values()}


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(path.relative_to(ROOT) for name in PRODUCT for path in (ROOT / name).rglob("*.py")))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))))


def imported_packages(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path}:{node.lineno}: relative imports hide the direction"
            yield node.module.split(".")[0]


def test_a_third_party_package_enters_where_the_table_says() -> None:
    known = {*sys.stdlib_module_names, "_typeshed", *PRODUCT}  # the second is the type checker's, and never imported
    offenses = [
        f"{path} imports {package}, which enters by {ENTRANCES.get(package, 'no file yet')}"
        for path in sources()
        for package in set(imported_packages(path)) - known
        if not path.as_posix().startswith(ENTRANCES.get(package, ()))
    ]
    assert offenses == []


def test_a_function_has_at_most_eight_parameters() -> None:
    offenses = []
    for path in sources():
        if path.parts[0] == "migrations" or path.as_posix() in COMMANDS:
            continue
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = [each.arg for each in given if each.arg not in {"self", "cls"}]
                if len(names) > MAX_PARAMETERS:
                    offenses.append(f"{path}:{node.lineno} {node.name}({', '.join(names)})")
    assert offenses == [], "more parameters are a value without a name"


def test_core_awaits_nothing_and_asks_no_clock() -> None:
    offenses = []
    for path in (each for each in sources() if each.parts[:2] == ("crawler", "core")):
        for node in nodes(path):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
                offenses.append(f"{place}: {type(node).__name__}")
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in NOT_IN_CORE or called.endswith(CLOCKS):
                    offenses.append(f"{place}: {called}")
    assert offenses == []
