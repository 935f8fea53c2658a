"""Paths that documentation and comments name lead somewhere: a file or a folder of the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "app|benchmarks|cli|core|crawl|crawler|docs|engine|export|fetch|flows|format|labs|mcp|migrations|models"
    "|notify|planner|prune|runtime|server|store|tests"
)
PATH = re.compile(rf"(?<![\w/.:\-])(?:{PACKAGES})/\w[\w./\-]*")
MODULE = re.compile(r"(?<![\w/.\-])[a-z]\w*\.py\b")
BASES = (ROOT, ROOT / "crawler", ROOT / "crawler" / "core")
# What only looks like a path, or is the path of something that is not there.
OTHERS = {
    "crawl/crawl",  # a deployment: flow and name
    "crawler/utils.py",  # where nothing may be
    "crawler/fetch/browser.py",  # will be the door of playwright
    "ensurepip.py",
}


def files(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split()]


def is_there(path: str) -> bool:
    path = path.rstrip("./")
    found = any((base / name).exists() for base in BASES for name in (path, f"{path}.py"))
    return found or any(ROOT.glob(f"{path}-*.md"))  # a decision, by its number


@pytest.mark.parametrize("pattern", ["*.md", "crawler/*.py", "flows/*.py", "models/*.py", "migrations/*.py"])
def test_paths_in_words_exist(pattern: str) -> None:
    lost = [
        f"{file.relative_to(ROOT)}:{number}: {path}"
        for file in files(pattern)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for path in PATH.findall(line)
        if path not in OTHERS and not is_there(path)
    ]

    assert lost == []


def test_modules_in_words_exist() -> None:
    names = {file.name for file in files("*.py")}
    lost = [
        f"{file.relative_to(ROOT)}:{number}: {name}"
        for file in files("*.md", "crawler/*.py", "flows/*.py", "models/*.py", "migrations/*.py")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for name in MODULE.findall(line)
        if name not in names | OTHERS
    ]

    assert lost == []
