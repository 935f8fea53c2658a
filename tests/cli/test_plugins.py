"""Plugins of an installed package: each works, and each is broken in turn."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from tests.commands import RECRAWL, Answer, Done, Site, environ
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "recrawl-example-plugins"
ALL = "papers,calendars,rows,weekdays"
TABLE = (("Content-Type", "text/csv; charset=utf-8"),)

Run = Callable[..., Done]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package of examples as pip would, with the installed builder."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(EXAMPLES, source)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture
def packages(wheel: Path, tmp_path: Path) -> Path:
    """Return a folder in which that package is installed."""
    folder = tmp_path / "packages"
    install(wheel, folder)
    return folder


def install(wheel: Path, folder: Path) -> None:
    """Install a wheel of pure Python by unpacking it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


@pytest.fixture
def run(packages: Path, tmp_path: Path) -> Run:
    """Return the command, in a process that finds the package."""

    def started(*arguments: str, plugins: str = ALL, database_url: str | None = None) -> Done:
        done = subprocess.run(
            [RECRAWL, *arguments],
            # Plugins are rewritten within a second, and compiled files have a resolution of one second.
            env=environ(database_url, tmp_path)
            | {"PYTHONPATH": str(packages), "RECRAWL_PLUGINS": plugins, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return started


def rewrite(packages: Path, module: str, before: str, after: str) -> None:
    """Replace a part of one of the plugins."""
    path = packages / "recrawl_example_plugins" / f"{module}.py"
    source = path.read_text(encoding="utf-8")
    assert before in source
    path.write_text(source.replace(before, after), encoding="utf-8")


def listed(found: Done) -> dict[str, dict[str, Any]]:
    return {each["url"]: each for each in found.json["pages"]}


@pytest.mark.soak
def test_the_command_of_the_docs_installs_a_plugin_into_an_environment_without_pip(tmp_path: Path) -> None:
    written = (EXAMPLES.parents[1] / "extending.md").read_text()
    (line,) = [each.partition("#")[0].strip() for each in written.splitlines() if each.startswith("make ")]
    folder = tmp_path / "packages"
    # As documented, but into a folder, and with the installed builder, so pip needs no index.
    options = {"PIP_TARGET": str(folder), "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": str(folder)}
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=EXAMPLES.parents[2],
        env=os.environ | options,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    assert "recrawl_example_plugins.papers:Papers" in done.stdout
    assert (folder / "recrawl_example_plugins").is_dir()


@pytest.mark.soak
def test_the_examples_take_part_in_a_crawl(run: Run, site: Site, database_url: str) -> None:
    site.page("/", "/abs/1", "/list/1", "/2026/05/31/", "/table.csv")
    site.page("/abs/1")
    site.page("/list/1")
    site.page("/2026/05/31/", "/2026/06/01/")
    site.page("/hidden.html")
    site.answers["/table.csv"] = Answer(b"name,page\nfirst,/hidden.html\n", headers=TABLE)

    done = run("crawl", site.url, "--allow-private", "--json", database_url=database_url)

    assert done.code == 0, done.err
    asked = set(site.asked)
    assert {"/abs/1", "/list/1", "/table.csv", "/hidden.html"} <= asked  # the last one is only linked from a table
    assert "/2026/05/31/" not in asked

    paper = run("explain", f"{site.url}abs/1", database_url=database_url)
    assert "with a plugin's score of 2" in paper.out
    day = run("explain", f"{site.url}2026/05/31/", database_url=database_url)
    assert "a URL filter plugin excludes it" in day.out
    assert run("db", "check", database_url=database_url).code == 0


@pytest.mark.soak
def test_papers_come_first_among_pages_that_were_found_together(run: Run, site: Site, database_url: str) -> None:
    site.page("/", *(f"/list/{n}" for n in range(20)), *(f"/abs/{n}" for n in range(20)))
    for n in range(20):
        site.page(f"/list/{n}")
        site.page(f"/abs/{n}")

    done = run("crawl", site.url, "--allow-private", "--pages", "15", database_url=database_url)

    assert done.code == 0, done.err
    papers = [path for path in site.asked if path.startswith(("/abs/", "/list/"))]
    assert len(papers) >= 14
    assert all(path.startswith("/abs/") for path in papers)


@pytest.mark.soak
def test_a_package_that_is_installed_and_not_named_changes_nothing(run: Run, site: Site, database_url: str) -> None:
    site.page("/", "/2026/05/31/")
    site.page("/2026/05/31/")

    assert run("crawl", site.url, "--allow-private", plugins="", database_url=database_url).code == 0
    assert "/2026/05/31/" in site.asked
    found = run("plugins", "--json", plugins="").json
    assert {(each["name"], each["is_used"], each["problem"]) for each in found["plugins"]} == {
        ("papers", False, ""),
        ("calendars", False, ""),
        ("rows", False, ""),
        ("weekdays", False, ""),
    }


PAPERS = "papers (recrawl.page_score, recrawl_example_plugins.papers:Papers of recrawl-example-plugins 1.0)"
CALENDARS = "calendars (recrawl.url_filter, recrawl_example_plugins.calendars:Calendars of recrawl-example-plugins 1.0)"
ROWS = "rows (recrawl.reader, recrawl_example_plugins.rows:Rows of recrawl-example-plugins 1.0)"
WEEKDAYS = "weekdays (recrawl.revisit, recrawl_example_plugins.weekdays:Weekdays of recrawl-example-plugins 1.0)"
BROKEN = [
    # raises when it is imported
    (
        "papers",
        "from urllib",
        "raise RuntimeError('boom')\nfrom urllib",
        f"{PAPERS} cannot be loaded: RuntimeError: boom",
    ),
    ("calendars", "import re", "import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named"),
    ("rows", "import csv", "raise SystemExit(3)\nimport csv", f"{ROWS} cannot be loaded: SystemExit: 3"),
    # has no such object, or requires arguments
    ("papers", "class Papers", "class Other", f"{PAPERS} cannot be loaded: AttributeError: "),
    (
        "calendars",
        "    def acc",
        "    def __init__(self, x): ...\n    def acc",
        f"{CALENDARS} cannot be loaded: TypeError: ",
    ),
    # raises at its first call
    (
        "papers",
        "path = urlsplit",
        "raise KeyError(url)\n        path = urlsplit",
        f"{PAPERS} fails at its first call: Key",
    ),
    ("calendars", "return DAY", "return 1 / 0 and DAY", f"{CALENDARS} fails at its first call: ZeroDivisionError: div"),
    (
        "rows",
        "rows = list",
        "raise ValueError('no')\n        rows = list",
        f"{ROWS} fails at its first call: ValueError: no",
    ),
    (
        "weekdays",
        "at: datetime",
        "raise ValueError('no')\n        at: datetime",
        f"{WEEKDAYS} fails at its first call: ",
    ),
    ("weekdays", "from typing", "raise RuntimeError('boom')\nfrom typing", f"{WEEKDAYS} cannot be loaded: RuntimeErr"),
    # returns a wrong type
    (
        "weekdays",
        "return morning - at",
        "return 7",
        f"{WEEKDAYS} returns the interval 7 (int) for https://example.com/a/page?of=1, not",
    ),
    ("weekdays", "morning - at", "at - morning", "not a timedelta above 0"),
    (
        "papers",
        "else 1.0",
        "else 'much'",
        f"{PAPERS} returns the score 'much' (str) for https://example.com/a/page?of=1, not a number",
    ),
    ("papers", "else 1.0", "else float('nan')", "not a number from 0 to 1000"),
    (
        "calendars",
        " is None",
        "",
        f"{CALENDARS} returns None (NoneType) for https://example.com/a/page?of=1, not True or",
    ),
    ("rows", "return ReadContent(", "return dict(", f"{ROWS} returns {{'text': "),
    ("rows", "links=links", "links='/a'", f"{ROWS} returns the links '/a' (str), not a sequence of strings"),
    # has no such method, or says nothing that it reads
    ("papers", "def score", "def scores", f"{PAPERS} has no method score(url)"),
    ("weekdays", "def choose_interval", "def wait", f"{WEEKDAYS} has no method choose_interval(visit)"),
    ("calendars", "def accepts", "def accept", f"{CALENDARS} has no method accepts(url)"),
    ("rows", "def read", "def reads", f"{ROWS} has no method read(body, *, url, content_type)"),
    ("rows", '("text/csv",)', '"text/csv"', f"{ROWS} has the media_types 'text/csv' (str), not a tuple such as"),
    ("rows", "text/csv", "text/html", f"{ROWS} reads text/html, which recrawl reads itself"),
]


def test_a_broken_plugin_is_one_line_at_the_start(run: Run, packages: Path, site: Site) -> None:
    rewrite(packages, "papers", "def score", "def scores")

    done = run("crawl", site.url, "--allow-private")

    assert done.code == 1
    assert done.out == ""
    assert "the plugin papers (" in done.complaint
    assert done.complaint.endswith("has no method score(url)")
    assert site.asked == []


@pytest.mark.soak
def test_each_kind_of_broken_plugin_is_reported(run: Run, wheel: Path, packages: Path) -> None:
    """Break all plugins at once, each in its first way, then in its second, and so on."""
    untold = []
    ways = [[broken for broken in BROKEN if broken[0] == module] for module in ALL.split(",")]
    for each in zip_longest(*ways):
        install(wheel, packages)
        wanted = {}
        for module, before, after, said in filter(None, each):
            rewrite(packages, module, before, after)
            wanted[module] = said
        told = {found["name"]: found["problem"] for found in run("plugins", "--json").json["plugins"]}
        untold += [(module, said, told[module]) for module, said in wanted.items() if said not in told[module]]

    assert untold == []


def test_an_unknown_plugin_is_reported_with_the_available_ones(run: Run, site: Site) -> None:
    done = run("crawl", site.url, "--allow-private", plugins="papers,calender")

    assert done.code == 1
    assert done.complaint == (
        "recrawl: RECRAWL_PLUGINS names 'calender', but no installed package has a plugin of that name; "
        "available: calendars, papers, rows, weekdays"
    )
    assert site.asked == []


@pytest.mark.soak
@pytest.mark.parametrize("command", [("crawl", "x.example", "--dry-run"), ("plan",), ("explain", "x.example"), ("up",)])
def test_every_command_that_uses_plugins_refuses_at_its_start(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, plugins="calender")

    assert done.code == 1
    assert "RECRAWL_PLUGINS names 'calender'" in done.complaint


def test_plugins_lists_what_is_wrong_with_each(run: Run, packages: Path) -> None:
    rewrite(packages, "papers", "def score", "def scores")

    done = run("plugins", "--json", plugins="papers,rows,calender")

    assert done.code == 1
    found = {each["name"]: each for each in done.json["plugins"]}
    assert found["papers"]["problem"].endswith("has no method score(url)")
    assert found["rows"]["is_used"]
    assert found["rows"]["problem"] == ""
    assert not found["calendars"]["is_used"]
    assert "no installed package" in found["calender"]["problem"]


def test_a_failing_score_or_filter_is_reported_once_and_breaks_nothing(
    run: Run, packages: Path, site: Site, database_url: str
) -> None:
    rewrite(packages, "papers", "path = ", "if '127' in url:\n            raise KeyError(url)\n        path = ")
    rewrite(packages, "calendars", "return DAY", "return 'yes' if '127' in url else DAY")

    done = run("crawl", site.url, "--allow-private", "--json", database_url=database_url)

    assert done.code == 0, done.err
    assert {"/one", "/two"} <= set(site.asked)
    failed = [line for line in done.err.splitlines() if "plugin.failed" in line]
    assert sorted(line.split("plugin=")[1].split()[0] for line in failed) == ["calendars", "papers"]
    assert all(site.url in line for line in failed)


@pytest.mark.soak
def test_a_reader_that_fails_at_a_page_makes_that_page_unreadable(
    run: Run, packages: Path, site: Site, database_url: str
) -> None:
    rewrite(
        packages,
        "rows",
        "        rows = list",
        "        print('printed where answers go')\n"
        "        if url.endswith('raises.csv'):\n            raise ValueError('no table')\n"
        "        if url.endswith('wrong.csv'):\n            return ['no', 'content']\n"
        "        if url.endswith('exits.csv'):\n            raise SystemExit\n"
        "        while url.endswith('spins.csv'):\n            pass\n"
        "        rows = list",
    )
    names = ("raises", "wrong", "exits", "spins", "good")
    site.page("/", *(f"/{name}.csv" for name in names))
    for name in names:
        site.answers[f"/{name}.csv"] = Answer(b"name,page\nfirst,/hidden.html\n", headers=TABLE)
    site.page("/hidden.html")

    done = run("crawl", site.url, "--allow-private", "--json", database_url=database_url)

    assert done.err.count("reader.lost") == 4, done.err
    assert "the plugin rows fails: ValueError: no table" in done.err
    assert "the plugin rows returns ['no', 'content'] (list), not a text" in done.err
    assert "parsing takes too much CPU time" in done.err
    assert "/hidden.html" in site.asked  # the good table was read
    assert done.code == 0
    visits = json.loads(run("explain", f"{site.url}raises.csv", "--json", database_url=database_url).out)
    assert visits["page"]["reason"] == "unreadable"
    assert run("db", "check", database_url=database_url).code == 0


WEDNESDAY, FRIDAY = "2040-02-01T12:00:00+00:00", "2040-02-03T12:00:00+00:00"
LATER = "2040-02-04T12:00:00+00:00"


def due_times(run: Run, site: Site, database_url: str) -> dict[str, str]:
    found = listed(run("pages", site.name, "--json", database_url=database_url))
    return {url.removeprefix(site.url): str(each["due_at"]) for url, each in found.items()}


@pytest.mark.soak
def test_a_domain_with_the_weekdays_policy_is_visited_on_the_next_working_day(
    run: Run, site: Site, database_url: str
) -> None:
    assert run("domains", "add", site.url, "--offline", "--allow-private", database_url=database_url).code == 0
    chosen = run("domains", "set", site.name, "--revisit", "weekdays", database_url=database_url)
    assert chosen.code == 0, chosen.err

    for at in ("2040-01-31T12:00:00+00:00", WEDNESDAY):
        assert run("crawl", site.name, "--at", at, database_url=database_url).code == 0

    assert {due[:16] for due in due_times(run, site, database_url).values()} == {"2040-02-02T06:00"}
    assert run("crawl", site.name, "--at", FRIDAY, database_url=database_url).code == 0
    assert {due[:16] for due in due_times(run, site, database_url).values()} == {"2040-02-06T06:00"}
    shown = run("domains", "show", site.name, database_url=database_url)
    assert "by policy: weekdays" in shown.out
    told = run("report", site.name, database_url=database_url)
    assert "by policy: weekdays" in told.out
    assert "importance x days" not in told.out
    for url in listed(run("pages", site.name, "--json", database_url=database_url)):
        explained = run("explain", url, "--at", LATER, "--json", database_url=database_url)
        assert explained.code == 0, explained.err
        known = json.loads(explained.out)
        assert known["due_today"]["bound"] == "policy"
        assert known["due_today"]["at"][:16] == "2040-02-06T06:00"
        assert (known["shadow_price"], known["value"], known["revisit"]) == (None, None, "weekdays")
        assert "the domain's revisit policy sets" in known["next"]
    assert run("plan", site.name, database_url=database_url).code == 0


@pytest.mark.soak
def test_an_unknown_revisit_policy_is_an_error_when_set_and_when_used(run: Run, site: Site, database_url: str) -> None:
    said = (
        "is not a revisit policy: use value, similarity, fixed with a duration such as 'fixed 7d', or an enabled plugin"
    )
    run("domains", "add", site.url, "--offline", "--allow-private", database_url=database_url)
    refused = run("domains", "set", site.name, "--revisit", "weekends", database_url=database_url)
    assert run("domains", "set", site.name, "--revisit", "weekdays", database_url=database_url).code == 0

    named = run("crawl", site.name, plugins="papers", database_url=database_url)

    assert (refused.code, named.code) == (2, 2)
    assert refused.complaint == f"recrawl: 'weekends' {said} (weekdays)"
    assert named.complaint == f"recrawl: 'weekdays' {said} (there is none)"
    assert site.asked == []
    due = run("crawl", "--due", plugins="", database_url=database_url)
    assert due.code == 0
    assert [line.split("policy=")[1].split()[0] for line in due.err.splitlines() if "revisit.unknown" in line] == [
        "weekdays"
    ]
    assert {"/one", "/two"} <= set(site.asked)


@pytest.mark.soak
def test_a_failing_revisit_policy_falls_back_to_the_price_and_is_reported_once(
    run: Run, packages: Path, site: Site, database_url: str
) -> None:
    rewrite(
        packages, "weekdays", "at: datetime", "if '127' in visit.url:\n            return 'soon'\n        at: datetime"
    )
    run("domains", "add", site.url, "--offline", "--allow-private", "--revisit", "weekdays", database_url=database_url)

    done = run("crawl", site.name, "--json", database_url=database_url)

    assert done.code == 0, done.err
    assert done.err.count("plugin.failed") == 1
    assert "returns the interval 'soon' (str) for http" in done.err
    assert all(due_times(run, site, database_url).values())
