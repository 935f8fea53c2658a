"""A recorded history is served as of each time, crawled by the real crawler, and measured."""

import json
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.change import Change
from crawler.store.database import open_database
from labs.__main__ import main
from labs.replay.crawl import Plan, Replay, Report, Visit, replay
from labs.replay.history import PageLife, SiteHistory, opened_history
from labs.replay.measures import Figures, figures_of, report_error, stale_days, verdicts
from labs.replay.rule import rule_visits
from labs.replay.site import RecordedSite, Sitemap, SiteRequest

DAY_S = 86_400
LINKS = '<a href="a">A</a> <a href="b.html">B</a> <a href="c.html">C</a> <a href="lost">lost</a>'
MENU = f"<nav>Menu of the site</nav>\n{LINKS}"
NAMES = ("index", "a", "b", "c")


def page(name: str, edition: int, *, menu: str = MENU) -> str:
    return f"<!DOCTYPE html><title>{name}</title>\n{menu}\n<p>Page {name} in its edition number {edition}.</p>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create four pages: `a` is edited on day 2.5, `new` appears on 3.5, menus change on 4.5, `c` is deleted on 5.5."""
    events: list[tuple[float, str, str | None]] = [(0, f"{name}.html", page(name, 1)) for name in NAMES]
    events += [(2.5, "a.html", page("a", 2)), (3.5, "index.html", page("index", 1, menu=f'{MENU} <a href="new.html">'))]
    events += [(3.5, "new.html", page("new", 1))]
    events += [(4.5, f"{name}.html", page(name, 1 + (name == "a"), menu=f"{MENU}\nmore")) for name in ("a", "b", "c")]
    events += [(5.5, "c.html", None)]
    blobs = tmp_path / "history" / "blobs"
    blobs.mkdir(parents=True)
    lines: list[tuple[int, str, str | None]] = []
    for n, (day, path, body) in enumerate(events):
        if body is not None:
            (blobs / f"{n}").write_text(body, encoding="utf-8")
        lines.append((int(day * DAY_S), path, None if body is None else f"{n}"))
    record = {"start": "2026-01-01T00:00:00Z", "days": 10, "events": lines}
    (tmp_path / "history" / "events.json").write_text(json.dumps(record), encoding="utf-8")
    return tmp_path / "history"


def test_a_change_of_the_menu_is_no_change_of_a_pages_own_text(folder: Path) -> None:
    pages = SiteHistory(folder).pages

    assert pages["a.html"] == PageLife("a.html", born=0.0, gone=float("inf"), changes=(2.5,))
    assert pages["b.html"].changes == ()
    assert pages["c.html"].gone == 5.5
    assert pages["new.html"].born == 3.5


def test_the_server_shows_each_page_under_both_its_names_and_as_it_was(folder: Path) -> None:
    site = RecordedSite(SiteHistory(folder), Sitemap.DATES)

    site.day = 2.0
    before = site.respond("/a.html")
    site.day = 6.0
    after = site.respond("/a")

    assert (before.status, before.body.decode()) == (200, page("a", 1))
    assert (after.status, b"edition number 2" in after.body) == (200, True)
    assert site.respond("/").body == site.respond("/index.html").body
    assert [site.respond(path).status for path in ("/c", "/lost", "/new.html")] == [404, 404, 200]
    assert b"a.html</loc><lastmod>2026-01-03T12:00:00+00:00</lastmod>" in site.respond("/sitemap.xml").body


def test_an_archive_is_read_as_its_folder(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "history.tar.xz"
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(folder, arcname=".")

    with opened_history(archive) as history:
        assert history.pages == SiteHistory(folder).pages
        assert history.start == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "visits", "days"),
    [
        pytest.param((4.0,), [0.0, 6.0], 2.0, id="until the next visit"),
        pytest.param((4.0, 5.0), [0.0, 6.0], 2.0, id="from the first change on"),
        pytest.param((4.0,), [0.0], 6.0, id="until the end"),
        pytest.param((), [3.0], 3.0, id="before the first visit"),
        pytest.param((4.0,), [], 10.0, id="without visits"),
    ],
)
def test_a_copy_is_stale_from_a_change_to_the_next_visit(
    changes: tuple[float, ...], visits: list[float], days: float
) -> None:
    assert stale_days(PageLife("p", 0.0, float("inf"), changes), visits, since=0.0, until=10.0) == days


@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param(None, "no readable events.json", id="no file"),
        pytest.param("{", "is not in the format", id="no JSON"),
        pytest.param('{"start": "2026-01-01T00:00:00Z", "days": 3}', "'events'", id="no events"),
        pytest.param([[0, "a.html", "lost"]], "has no lost", id="a lost blob"),
        pytest.param([[9, "a.html", None], [3, "a.html", None]], "not in order", id="disorder"),
        pytest.param([[9, "a.html", None]], "no page at second 0", id="no beginning"),
    ],
)
def test_invalid_history_is_an_error(
    tmp_path: Path, events: str | list[object] | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "blobs").mkdir()
    if events is not None:
        text = json.dumps({"start": "2026-01-01T00:00:00Z", "days": 10, "events": events})
        (tmp_path / "events.json").write_text(events if isinstance(events, str) else text, encoding="utf-8")

    status = main(["replay", str(tmp_path), "--share", "0.05"])

    assert status == 2
    assert message in capsys.readouterr().err


def test_invalid_archive_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history.tar.xz").write_text("no archive", encoding="utf-8")

    assert main(["replay", str(tmp_path / "history.tar.xz"), "--budget", "4"]) == 2
    assert "nor a readable .tar archive" in capsys.readouterr().err


def test_a_feed_is_served_with_its_own_type_and_is_no_page(folder: Path) -> None:
    record = json.loads((folder / "events.json").read_text(encoding="utf-8"))
    record["events"] += [[0, "feed.atom", "0"], [DAY_S, "feed.atom", "1"]]
    (folder / "events.json").write_text(json.dumps(record), encoding="utf-8")
    history = SiteHistory(folder)
    site = RecordedSite(history, Sitemap.PLAIN)

    assert site.respond("/feed.atom").content_type == "application/atom+xml"
    assert site.respond("/a.html").content_type == "text/html"
    assert history.page_of("/feed.atom", 1.0) is None
    assert "feed.atom" not in {*history.pages, *history.live(1.0)}


lives = st.lists(st.lists(st.floats(0.01, 29.9), max_size=8).map(sorted), min_size=2, max_size=8)


@pytest.mark.soak
@given(changes=lives, per_day=st.integers(1, 24))
def test_the_plain_rule_uses_each_request_of_its_budget(changes: Sequence[Sequence[float]], per_day: int) -> None:
    pages = [PageLife(f"{n}", 0.0, float("inf"), tuple(at)) for n, at in enumerate(changes)]

    times = rule_visits(pages, np.ones(len(pages)), per_day, since=0.0, until=30.0)

    assert sum(map(len, times)) - len(pages) in {30 * per_day - 1, 30 * per_day}
    assert all(sorted(set(seen)) == seen and seen[-1] <= 30.0 for seen in times)


def test_plain_rule_prefers_changing_and_important_pages_and_skips_gone_ones() -> None:
    daily = tuple(n + 0.5 for n in range(60))
    pages = [PageLife("daily", 0.0, float("inf"), daily), PageLife("gone", 0.0, 20.0, ())]
    pages += [PageLife(f"calm {n}", 0.0, float("inf"), ()) for n in range(8)]

    times = rule_visits(pages, np.array([1.0] * 9 + [4.0]), 2, since=0.0, until=60.0)

    assert len(times[0]) > 2 * max(map(len, times[2:]))
    assert len(times[9]) > len(times[8])
    assert max(times[1]) < 20.0


def test_a_page_that_was_seen_to_be_gone_is_no_longer_counted_as_stale(folder: Path) -> None:
    requests = [SiteRequest(0.0, f"/{name}.html", f"{name}.html", 200) for name in ("b", "c")]
    seen = Replay([], [*requests, SiteRequest(6.0, "/c.html", "c.html", 404)], {}, [Report(7.0, 1.0, 1.0)])
    unseen = Replay([], requests, {}, [Report(7.0, 1.0, 1.0)])

    assert report_error(SiteHistory(folder), seen) == 0.0
    assert report_error(SiteHistory(folder), unseen) == 0.5


async def replayed(folder: Path, database_url: str, plan: Plan) -> Figures:
    history = SiteHistory(folder)
    async with open_database(database_url) as db:
        return figures_of(history, plan, await replay(db, history, plan, progress=lambda _: None))


@pytest.mark.soak
async def test_small_paced_budget_is_spent_without_leases_without_requests(folder: Path, database_url: str) -> None:
    plan = Plan(budget=4, days=9, runs_a_day=2, sitemap=Sitemap.NONE, is_cold=True)

    found = await replayed(folder, database_url, plan)

    assert (found.late_runs, found.repeated_leases, found.short_days) == (0, 0, 0)
    assert found.used <= 1.0
    assert (found.discovery.found, found.deletion.events) == (1, 1)
    assert found.dead_links > 0
    assert found.recall == 1.0


@pytest.mark.soak
async def test_runs_that_find_little_to_do_end_and_the_budget_is_spent(folder: Path, database_url: str) -> None:
    plan = Plan(budget=4, days=1, runs_a_day=24, sitemap=Sitemap.PLAIN, is_cold=True)

    found = await replayed(folder, database_url, plan)

    assert (found.late_runs, found.repeated_leases, found.short_days) == (0, 0, 0)
    assert found.requests == 4


@pytest.mark.soak
def test_one_command_replays_several_budgets_and_shows_what_misses_its_bound(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "replay",
        str(folder),
        "--share",
        "0.5",
        "--share",
        "1",
        "--days",
        "3",
        "--home",
        str(tmp_path / "home"),
    ]

    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert main([*arguments, "--json", "--sitemap", "none", "--sitemap", "dates", "--days", "1", "--cold"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [line.split()[0] for line in printed.splitlines() if "requests a day, 2 days" in line] == ["2", "4"]
    assert "the plain rule, at equal budget: " in printed
    assert "(at least 0.97" in printed
    assert [(each["sitemap"], each["budget"]) for each in records] == [
        ("none", 2),
        ("none", 4),
        ("dates", 2),
        ("dates", 4),
    ]
    assert all({"rule", "missed"} <= each.keys() for each in records)


def test_line_breaks_and_links_to_translations_are_not_changes(tmp_path: Path) -> None:
    bar = "<p>Languages: {} <a href=/a.html>en</a></p>"
    link = "<a rel=alternate hreflang=fr href=/fr/a.html>fr</a> |"
    bodies = ["<p>one\ntwo three</p>" + bar.format(""), "<p>one two\nthree</p>" + bar.format(link), "<p>one two</p>"]
    declared = "<?xml version='1.0' encoding='ISO-8859-1'?><meta charset=iso-8859-1><p>\xe9t\xe9</p>"
    history = written(tmp_path, [(n, "a.html", body.encode()) for n, body in enumerate(bodies)], declared)

    assert (history.pages["a.html"].changes, history.pages["b.html"].changes) == ((2.0,), ())
    assert history.own_text("b.html", 1.0) == "\xe9t\xe9"
    assert history.own_text("c.html", 1.0) is None


def test_reverted_change_between_two_visits_does_not_count(tmp_path: Path) -> None:
    history = written(tmp_path, [(n, "a.html", f"<p>{text}</p>".encode()) for n, text in enumerate("abac")], "<p>b")
    visits = {"/a.html": [Visit(0.5, Change.ADDED), Visit(2.5, Change.UNCHANGED), Visit(3.5, Change.CHANGED)]}

    assert verdicts(history, visits) == (1.0, 1.0)


def test_change_of_only_an_own_link_counts_neither_for_nor_against_the_crawler(tmp_path: Path) -> None:
    def body(name: str, day: int) -> bytes:
        own, menu = ("abbb"[day], "home" if day < 3 else "start")
        return f"<p><a href=/{name}/{own}>more</a> <a href=/{menu}>Home</a>".encode()

    pages = [(day, f"{name}.html", body(name, day)) for name in "acd" for day in range(4)]
    history = written(tmp_path, pages, "")
    seen = [Visit(0.5, Change.ADDED), Visit(1.5, Change.CHANGED), Visit(2.5, Change.UNCHANGED)]

    assert verdicts(history, {"/a.html": seen}) == (1.0, 1.0)
    assert verdicts(history, {"/a.html": [*seen, Visit(3.5, Change.CHANGED)]}) == (0.0, 1.0)  # only the menu differs


def written(folder: Path, events: list[tuple[int, str, bytes]], other: str) -> SiteHistory:
    """Write a history of a.html, which changes, and of b.html, which does not."""
    (folder / "blobs").mkdir()
    lines = []
    for n, (day, path, body) in enumerate([(0, "b.html", other.encode("latin-1")), *events]):
        (folder / "blobs" / str(n)).write_bytes(body)
        lines.append((day * DAY_S, path, str(n)))
    record = {"start": "2026-01-01T00:00:00Z", "days": 10, "events": lines}
    (folder / "events.json").write_text(json.dumps(record), encoding="utf-8")
    return SiteHistory(folder)
