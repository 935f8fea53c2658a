"""The bounds in pyproject.toml and the pins in the lock files agree, and the pins name no place."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", "requirements-bench.lock")
BOUNDS = {
    "requirements.lock": PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"],
    "requirements-bench.lock": PROJECT["dependency-groups"]["bench"],
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
    for bound in map(Requirement, BOUNDS[lock]):
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


def test_the_bench_lock_pins_nothing_differently() -> None:
    ours = pins("requirements.lock")
    for name, versions in pins("requirements-bench.lock").items():
        assert ours.get(name, versions) == versions, name


def test_what_breaks_prefect_stays_out() -> None:
    bounds = {bound.name: bound.specifier for bound in map(Requirement, PROJECT["project"]["dependencies"])}
    assert "0.151.0" not in bounds["fastapi"]  # the server does not import
    assert "2.1.0" not in bounds["sqlalchemy"]  # the server never schedules
