"""Modules that commands need when they run. Each is executed on first use, so `--help` executes none of them."""

import sys
from functools import cache
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawler.app import (
        action_log,
        changes,
        crawl,
        domains,
        imports,
        page_reader,
        pages,
        registration,
        reports,
        revisits,
        rules,
        status,
        tags,
    )
    from crawler.app.delivery import exports, feeds, notifications
    from crawler.app.running import local_stack, maintenance, tokens, users
    from crawler.cli import progress
    from crawler.cli.crawling import crawl_output, preview_output
    from crawler.cli.delivery import notify_output
    from crawler.cli.domains import register
    from crawler.cli.pages import explain_output, try_page_output, versions_output
    from crawler.cli.reports import changes_output, plan_output, report_output
    from crawler.cli.running import sql_output
    from crawler.format import domain_settings, kinds, reasons

# The main thread must use each module first: LazyLoader of Python 3.11 is not thread-safe.
PACKAGES = (
    *("crawler.app", "crawler.app.delivery", "crawler.app.running", "crawler.format", "crawler.cli"),
    *(f"crawler.cli.{folder}" for folder in ("crawling", "delivery", "domains", "pages", "reports", "running")),
)


@cache
def _list_modules() -> dict[str, str]:
    """Return the modules of the packages by their name; the first package that has a name counts."""
    root = Path(__file__).parents[2]
    files = [(package, file) for package in PACKAGES for file in root.joinpath(*package.split(".")).glob("*.py")]
    return {file.stem: f"{package}.{file.stem}" for package, file in reversed(files)}


def __getattr__(name: str) -> ModuleType:
    """Return the module of this name from one of the packages; `from crawler.cli.lazy import NAME` calls this."""
    path = _list_modules().get(name)
    if path is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if path not in sys.modules:
        spec = find_spec(path)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = LazyLoader(spec.loader)
        sys.modules[path] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path])
    globals()[name] = sys.modules[path]
    return sys.modules[path]
