"""The glossary names modules and definitions that exist, in order, each word once, and at most forty of them."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"\| (?P<word>[^|]+) \| (?P<field>[^|]*) ?\| (?P<means>[^|]+) \| `(?P<where>[^`|]+)` \|")
ROWS = [
    found
    for line in (ROOT / "docs/glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| word ") and (found := ROW.fullmatch(line))
]
WORDS = [row["word"] for row in ROWS]
NAMED = [(row["where"], name) for row in ROWS for name in re.findall(r"`(\w+)`", row["means"])]


@cache
def defined_in(module: Path) -> set[str]:
    """The names that a module defines at its top."""
    names: set[str] = set()
    for node in ast.parse(module.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names


MAX_WORDS = 40


def test_the_words_are_few_distinct_and_in_order() -> None:
    lines = [line for line in (ROOT / "docs/glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1
    assert len(ROWS) <= MAX_WORDS
    assert sorted(WORDS) == WORDS
    assert len(set(WORDS)) == len(WORDS)


def test_every_word_names_a_module_that_exists() -> None:
    assert [row["where"] for row in ROWS if not (ROOT / row["where"]).is_file()] == []


def test_a_name_in_the_glossary_is_defined_where_it_says() -> None:
    assert NAMED
    assert [f"{where}: {name}" for where, name in NAMED if name not in defined_in(ROOT / where)] == []


def test_every_package_of_core_has_a_word() -> None:
    packages = {path.name for path in (ROOT / "crawler/core").iterdir() if path.is_dir() and path.name[0] != "_"}
    named = {row["where"].split("/")[2] for row in ROWS if row["where"].startswith("crawler/core/")}
    assert packages <= named, packages - named
