"""Help and usage errors, and how fast they are shown."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from crawler.cli import main
from crawler.cli.app import app
from tests.commands import Recrawl, command
from tests.patience import PATIENCE_S

HEAVY = (
    "prefect",
    "playwright",
    "sqlalchemy",
    "sqlmodel",
    "alembic",
    "psycopg",
    "httptools",
    "numpy",
    "ada_url",
)
MAX_MODULES = 500  # 440 today, with those of pydantic that typer imports; sqlalchemy alone would be 200 more


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Iterate over all commands."""
    group = group or typer.main.get_command(app)
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name), found


ALL = dict(commands())


def test_these_are_the_commands() -> None:
    assert {" ".join(path) for path in ALL} == {
        *(f"domains {name}" for name in ("add", "list", "show", "set", "pause", "resume", "remove", "reset-clock")),
        *("rules list", "rules add", "rules remove"),
        *(f"tags {name}" for name in ("list", "show", "add", "remove", "set", "delete")),
        *("crawl", "refresh", "hint", "plan", "pages", "report", "traffic", "audit", "changes", "duplicates"),
        *("export", "sync", "feed", "mcp", "prune"),
        *(f"notify {name}" for name in ("add", "list", "remove", "test", "run", "dead", "redeliver", "discard")),
        *("notify pause", "notify resume", "notify set"),
        *(f"tokens {name}" for name in ("add", "list", "revoke")),
        *(f"users {name}" for name in ("add", "list", "set", "remove")),
        *("actions", "explain", "try", "diff", "versions", "show", "values"),
        *("up", "down", "status", "ui", "serve", "plugins"),
        *("deploy", "server", "worker", "health"),
        *(f"db {name}" for name in ("upgrade", "check", "dump", "restore", "url", "shell", "sql", "grant", "revoke")),
    }


def test_every_command_shows_examples_of_itself() -> None:
    examples = {" ".join(path): (found.help or "").partition("Examples:")[2] for path, found in ALL.items()}

    assert [words for words, shown in examples.items() if f"recrawl {words}" not in shown] == []


def test_every_command_can_print_json() -> None:
    # The output of db shell is that of psql, and that of mcp is JSON-RPC; the other two only log to stderr.
    silent = {("db", "shell"), ("mcp",), ("server",), ("worker",)}
    without = {path for path, found in ALL.items() if "as_json" not in {parameter.name for parameter in found.params}}

    assert without == silent


def test_every_option_has_a_help_text() -> None:
    options = [(path, parameter) for path, found in ALL.items() for parameter in found.params]

    assert [f"{' '.join(path)}: {parameter.name}" for path, parameter in options if not parameter.help] == []


def test_option_names_are_whole_on_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    cut = []
    for path, found in ALL.items():
        assert main([*path, "--help"]) == 0
        shown = capsys.readouterr().out.split()
        names = [name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)]
        cut += [f"{' '.join(path)} {name}" for name in names if name.startswith("--") and name not in shown]

    assert cut == []


def test_what_reads_the_clock_can_be_given_another_instant() -> None:
    with_at = {" ".join(path) for path, found in ALL.items() if "at" in {p.name for p in found.params}}

    assert with_at == {
        *("domains add", "domains show", "domains set", "rules add", "rules remove"),
        *("crawl", "refresh", "hint", "plan", "pages", "report", "traffic", "audit", "changes", "explain", "try"),
        *("show", "notify run"),
    }


@pytest.mark.parametrize("arguments", [("--help",), ("crawl", "--help"), ("domains", "add", "--help")], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    script = (
        "import json, sys; from crawler.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "print(json.dumps([code, sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])

    assert code == 0
    assert "Usage: recrawl" in done.stdout
    assert sorted({name.split(".")[0] for name in modules} & set(HEAVY)) == []
    assert len(modules) < MAX_MODULES


def test_without_arguments_help_is_shown_with_a_usage_exit_code(recrawl: Recrawl) -> None:
    for arguments in ((), ("domains",), ("db",)):
        done = recrawl(*arguments)
        assert done.code == 2
        assert "Usage: recrawl" in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("crwl",), "No such command 'crwl'"),
        (("crawl", "--everything"), "No such option: --everything"),
        (("crawl", "--pages", "0", "a.test"), "--pages"),
        (("crawl", "--pages", "many", "a.test"), "--pages"),
        (("crawl",), "nothing to crawl"),
        (("domains", "add"), "nothing to register"),
        (("domains", "show"), "Missing argument"),
        (("domains", "set", "a.test"), "nothing to change"),
        (("domains", "add", "a.test", "--parallelism", "0"), "--parallelism"),
        (("domains", "add", "a.test", "--delay", "-1"), "--delay"),
        (("domains", "add", "a.test", "--delay", "nan"), "--delay"),
        (("domains", "add", "a.test", "--weight", "0"), "--weight"),
        (("domains", "add", "a.test", "--language", "de_AT"), "not a list of languages"),
        (("domains", "add", "a.test", "--language", "de;q=1.5"), "not a list of languages"),
        (("domains", "add", "a.test", "--language", "de\r\nCookie: a"), "not a list of languages"),
        (("report", "--at", "yesterday"), "is not an ISO 8601 instant"),
        (("report", "--at", "0001-01-01"), "not in the years"),
        (("report", "--days", "0"), "--days"),
        (("changes", "--since", "soon"), "not a cursor, a duration such as 7d, or a day"),
        (("crawl", "a.test", "--max-run-time", "5x"), "is not a time span"),
        (("domains", "add", "a.test", "--delay", "200w 1"), "is not a time span"),
        (("domains", "add", "a.test", "--delay", "inf"), "longer than a century"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_invalid_usage_is_one_line_and_exit_code_2(
    recrawl: Recrawl, arguments: tuple[str, ...], complaint: str
) -> None:
    done = recrawl(*arguments)

    assert done.code == 2
    assert done.out == ""
    assert complaint in done.complaint
    assert done.complaint.startswith("recrawl: ")


def test_the_command_itself_ends_with_the_code(tmp_path: Path) -> None:
    done = command("crawl", database_url="postgresql://nobody@127.0.0.1:1/nothing", home=tmp_path)

    assert done.code == 2
    assert "nothing to crawl" in done.complaint


@pytest.mark.parametrize(
    ("shell", "variables"),
    [
        ("bash", {"COMP_WORDS": "recrawl cra", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "recrawl cra"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "recrawl cra", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_completes_commands(
    shell: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**variables, "_RECRAWL_COMPLETE": f"complete_{shell}"}.items():
        monkeypatch.setenv(name, value)

    assert main([]) == 0
    assert "crawl" in capsys.readouterr().out
