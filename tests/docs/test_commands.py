"""Commands in the documentation exist and take the options that they show; links between pages lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException

from crawler.cli.app import app
from crawler.cli.reference import PAGES, iterate_commands

ROOT = Path(__file__).parents[2]
DOCS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(.*)$", re.MULTILINE)
INLINE = re.compile(r"`(recrawl [^`]*)`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
# What a reader reads from beginning to end. References may be longer.
MAX_LINES = 125
REFERENCES = {*PAGES, "sql.md", "pitfalls.md"}


@cache
def commands() -> dict[tuple[str, ...], Any]:
    root: Any = typer.main.get_command(app)
    return {(): root, **{path[1:]: command for path, command in iterate_commands(root, ("recrawl",))}}


def split(line: str) -> list[str]:
    """Return the words of one command, without comment, pipe and redirection."""
    words = shlex.split(line.partition(" # ")[0].partition("  #")[0], comments=False)
    ends = [number for number, word in enumerate(words) if word in {"|", ">", "<", "&&", "&", ";", ">>"}]
    return words[: ends[0]] if ends else words


def shown_commands(text: str) -> Iterator[str]:
    """Yield each line of a block that runs recrawl."""
    blocks = [block for language, block in FENCE.findall(text) if language in {"", "sh"}]
    for line in [*"\n".join(blocks).splitlines(), *INDENTED.findall(FENCE.sub("", text))]:
        found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:createdb \S+ && [A-Z_]+=\S+ )?(recrawl [a-z].*)", line.strip())
        if found:
            yield found[1]


def find_command(words: list[str]) -> tuple[Any, list[str]] | None:
    if words[1:] and words[1].startswith("--"):
        return commands()[()], words[1:]
    for length in (2, 1):
        if command := commands().get(tuple(words[1 : 1 + length])):
            return command, words[1 + length :]
    return None


def explain_misuse(line: str) -> str:
    """Return why a command line would be refused; empty if it would not."""
    found = find_command(split(line))
    if found is None:
        return "no such command"
    command, words = found
    try:
        command.make_context("recrawl", list(words))
    except TyperException as error:
        return str(error) or type(error).__name__
    return ""


def explain_mention(mention: str) -> str:
    """Return why a mention in a sentence, such as `recrawl rules add --watch`, names what does not exist."""
    words = mention.replace("...", "").split()
    found = find_command(words)
    if found is None:
        allowed = {*(path[0] for path in commands() if path), "COMMAND", "--help", "--version", "--install-completion"}
        return "" if allowed.intersection(words[1:2]) else "no such command"
    known = {option for parameter in found[0].params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in found[1] if word.startswith("--") and word not in {*known, "--help"}]
    return f"unknown: {unknown}" if unknown else ""


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_accepted(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    offenses = [f"{line}: {why}" for line in shown_commands(text) if (why := explain_misuse(line))]
    offenses += [f"{line}: {why}" for line in INLINE.findall(FENCE.sub("", text)) if (why := explain_mention(line))]

    assert offenses == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)

    assert lost == []


def test_a_page_fits_on_three_screens() -> None:
    long = {
        page.name: count
        for page in DOCS
        if page.parent == ROOT / "docs" and page.name not in REFERENCES
        if (count := len(page.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }

    assert long == {}


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "docs/site/mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"[\w-]+\.md", navigation)

    assert sorted(listed) == sorted(page.name for page in DOCS if page.parent == ROOT / "docs")
