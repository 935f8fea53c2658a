"""Texts for readers use the standard words of the field (docs/decisions/0057-standard-terms.md)."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer

from crawler.cli.app import app
from crawler.cli.reference import iterate_commands

ROOT = Path(__file__).parents[2]
PACKAGES = ("crawler", "flows", "models")

# Words that texts must not use, and what to write in their place.
WORDS = {
    r"\blooks?\b(?!-around)(?! (?:alive|for|into|like|small|them|up)\b)|\blooked at\b": "visit",
    r"\bworth\b": "value",
    r"\b(?:usual|today's) price\b|\bthe price of (?:a (?:visit|request)|requests)\b": "minimum value, shadow price",
    r"\bcoins?\b": "cash",
    r"\b(?:held|hold|holds) back\b|\bput off\b|\blet go\b": "deferred, resumed",
    r"\bhand(?:s|ed)? out\b": "select, dispatch",
    r"\bleft alone\b": "suspended",
    r"\b(?:told|tells)\b(?! apart)": "reported, says, notified",
    r"\basked for by\b": "requested by",
    r"\banew\b|\breckon": "again, recompute",
    r"\bof one's own\b|\bpages? of your own\b|\blets? you in\b": "web UI, login link",
    r"\brungs?\b": "evidence",
    r"\b(?:leaders?|riders?)\b": "canonical, duplicate",
    r"\blookers?\b": "fetch worker",
    r"\b(?:somebody|anybody)\b": "a user, another process",
    r"\bthe reserve\b": "virtual page",
    r"\b(?:crews?|doorkeeper|twins?)\b": "process pool, authentication, duplicate",
    r"\bbeliefs?\b": "change-rate estimate",
    r"\blearnt\b|\bbehaviour|\bfavour|\bnormalis|\brecognis|\bcolour|\bneighbour|\bserialis|\blicence\b": "US spelling",
}
BANNED = re.compile("|".join(f"(?:{word})" for word in WORDS), re.IGNORECASE)
# The left columns of the standard terms as names: of functions, classes, parameters, columns and keys.
SQL = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE)\b")
NAMES = re.compile(
    r"^(?:most|least|shown|said|told|asked)_|_(?:asked|told|worth|looks?)$|^looks?$|^look_(?!up)|^(?:worth|coins|reserve|rung|leader|rider"
    r"|crew|belief|wanted|wish|counted_as|hold_until|favou?red)$"
)


def iterate_sentences(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, comments and other strings with a space of a Python source; no SQL."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and not SQL.search(node.value)
        ):
            yield from enumerate(node.value.splitlines(), node.lineno)
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.search(r"(?:^|\s)# (.*)", line):
            yield number, found[1]


def iterate_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the public names that a Python source defines: functions, classes, parameters, fields."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.lineno, node.target.id


def strip_quotes(text: str) -> str:
    """Return a Markdown or HTML text without code, which quotes what programs and sites say."""
    return re.sub(r"```.*?```|`[^`\n]*`|^ {4}.*$|\{[{%#].*?[}%#]\}|<[^>]*>", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def read_helps() -> dict[str, str]:
    """Return the help page of each command, as typed."""
    commands = iterate_commands(typer.main.get_command(app), ("recrawl",))
    texts = {}
    for path, command in commands:
        options = [getattr(parameter, "help", None) or "" for parameter in command.params]
        texts[" ".join(path) + " --help"] = "\n".join([command.help or "", *options])
    return texts


def find_offenses(name: str, sentences: Iterator[tuple[int, str]]) -> list[str]:
    """Return where sentences use a banned word."""
    return [f"{name}:{number}: {found[0]}" for number, text in sentences if (found := BANNED.search(text))]


def find_name_offenses(name: str, source: str) -> list[str]:
    """Return where a source defines a banned name."""
    return [f"{name}:{number}: {word}" for number, word in iterate_names(source) if NAMES.search(word)]


def test_texts_use_the_standard_words() -> None:
    offenses = []
    pages = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    for path in [*pages, *sorted((ROOT / "crawler/server/ui/templates").glob("*.html"))]:
        text = strip_quotes(path.read_text(encoding="utf-8"))
        offenses += find_offenses(str(path.relative_to(ROOT)), enumerate(text.splitlines(), 1))
    for name, text in read_helps().items():
        offenses += find_offenses(name, enumerate(text.splitlines(), 1))
    for path in sorted((ROOT / "models/sql").glob("*.sql")):
        offenses += find_offenses(path.name, enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
            offenses += find_offenses(name, iterate_sentences(source)) + find_name_offenses(name, source)

    assert offenses == []


def test_planted_offenses_are_found() -> None:
    planted = '''
"""A looker asks for what was told."""

WORTH = 3  # what a look is worth


def said_price(coins: int) -> str:
    """Reckon it anew."""
    return f"the page is left alone and the reserve was handed out to {coins}"


class Told:
    most_bytes: int
    favoured: bool
    belief: float
'''
    words = find_offenses("planted", iterate_sentences(planted))
    names = find_name_offenses("planted", planted)

    assert sorted(each.split(": ")[1] for each in words) == ["Reckon", "left alone", "look", "looker"]
    assert sorted(each.split(": ")[1] for each in names) == ["belief", "coins", "favoured", "most_bytes", "said_price"]
    assert find_offenses("page", enumerate(["A page of one's own"])) == ["page:0: of one's own"]
