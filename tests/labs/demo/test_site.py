"""The living site is what it says it is: the same for everybody, changing exactly when it says, and linked."""

import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from itertools import pairwise
from statistics import median
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url, get_path_and_query
from crawler.core.page.lists.url_list import read_url_list
from labs.demo.site import (
    CALENDAR,
    CHAIN,
    DISALLOWED,
    LIARS,
    Ask,
    Behaviour,
    Reply,
    Serving,
    Sheet,
    SheetKind,
    Site,
    make_site,
    reply,
)
from tests.labs.demo.conftest import START

SECOND = timedelta(seconds=1)
HONEST = (Serving.BOTH, Serving.ETAG, Serving.LAST_MODIFIED)
DIGEST_IN_A_NEW_PROCESS = """
from datetime import UTC, datetime
from hashlib import sha256
from labs.demo.site import Ask, make_site, reply
site = make_site(7, pages=120, start=datetime(2026, 1, 1, tzinfo=UTC))
digest = sha256()
for path, sheet in site.sheets_by_path.items():
    digest.update(repr((path, sheet, reply(site, Ask(path), site.end, 3))).encode())
print(digest.hexdigest())
"""


def look(site: Site, path: str, at: datetime, number: int = 0, /, **conditions: str | None) -> Reply:
    return reply(site, Ask(path, **conditions), at, number)


def header(answer: Reply, name: str) -> str | None:
    return dict(answer.headers).get(name)


def copy_of(site: Site, path: str, at: datetime) -> dict[str, str | None]:
    """The conditions that a crawler would send back after a look."""
    first = look(site, path, at)
    return {"if_none_match": header(first, "ETag"), "if_modified_since": header(first, "Last-Modified")}


def edited(site: Site, *servings: Serving) -> list[Sheet]:
    """Sheets that stand there throughout and change at least once."""
    wanted = servings or tuple(Serving)
    return [s for s in site.sheets_by_path.values() if s.changes and s.since is None and s.serving in wanted]


def without_slot(body: bytes) -> bytes:
    """The page without what differs between answers of one version."""
    return re.sub(rb'<p>Generated on .*?</p>|value="[0-9a-f]+"', b"", body)


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def links(answer: Reply, path: str) -> list[str]:
    parser = Links()
    parser.feed(answer.body.decode())
    return [urljoin(path, href).split("#")[0] for href in parser.found]


def walk(site: Site, at: datetime) -> set[str]:
    """Every path that answers 200 to somebody who starts at the home page, obeys robots.txt and avoids the calendar."""
    found, seen, waiting = set[str](), {"/"}, ["/"]
    while waiting:
        path = waiting.pop()
        answer = look(site, path, at)
        if answer.status == 200:
            found.add(path)
        onwards = [header(answer, "Location")] if 300 <= answer.status < 400 else links(answer, path)
        fresh = {p for p in onwards if p and not p.startswith((DISALLOWED, CALENDAR))} - seen
        seen |= fresh
        waiting += sorted(fresh)
    return found


def test_the_same_seed_gives_the_same_site_to_the_byte_in_every_process() -> None:
    digests = [
        subprocess.run(
            [sys.executable, "-c", DIGEST_IN_A_NEW_PROCESS],
            env=os.environ | {"PYTHONHASHSEED": hashing},
            check=True,
            capture_output=True,
        ).stdout
        for hashing in ("1", "2")
    ]

    assert digests[0] == digests[1]


def test_another_seed_gives_another_site(site: Site) -> None:
    other = make_site(2, start=START)

    assert set(other.paths(START)) != set(site.paths(START))
    assert look(other, "/", START).body != look(site, "/", START).body


@pytest.mark.soak
@given(seed=st.integers(0, 10**6), pages=st.integers(80, 400), days=st.integers(1, 120))
def test_a_site_has_as_many_pages_as_were_asked_for(seed: int, pages: int, days: int) -> None:
    made = make_site(seed, pages=pages, start=START, days=days)

    assert len([path for path in made.sheets_by_path if not path.startswith(DISALLOWED)]) == pages


def test_every_behaviour_of_pages_and_servers_occurs(site: Site) -> None:
    sheets = site.sheets_by_path.values()

    assert {sheet.behaviour for sheet in sheets} == set(Behaviour)
    assert {sheet.serving for sheet in edited(site)} == set(Serving)
    assert sum(sheet.broken is not None for sheet in sheets) == 3
    assert all(sheet.changes or sheet.behaviour is Behaviour.POISSON for sheet in sheets if sheet.serving in LIARS)


@pytest.mark.soak
def test_a_page_changes_at_its_known_instants_and_at_no_other(site: Site) -> None:
    for sheet in site.sheets_by_path.values():
        here = [at for at in (START, *sheet.changes, site.end) if sheet.is_there(at) and not sheet.is_broken(at)]
        bodies = [without_slot(look(site, sheet.path, at).body) for at in here]

        assert len(set(bodies)) == len({site.version(sheet.path, at) for at in here}), sheet.path
        for change in sheet.changes:
            before = without_slot(look(site, sheet.path, change - SECOND).body)
            assert before != without_slot(look(site, sheet.path, change).body), sheet.path


@pytest.mark.soak
def test_between_changes_answers_are_equal_but_for_clocks_and_tokens(site: Site) -> None:
    moments = [START + n * timedelta(hours=7) for n in range(150)]
    for path in site.paths(START):
        sheet, seen = site.sheet(path), dict[tuple[int, int], set[bytes]]()
        for number, at in enumerate(at for at in moments if sheet.is_there(at)):
            answer = look(site, path, at, number)
            seen.setdefault((answer.status, site.version(path, at)), set()).add(answer.body)

        visits = Counter((look(site, path, at).status, site.version(path, at)) for at in moments if sheet.is_there(at))
        for (status, version), bodies in seen.items():
            moving = status == 200 and (sheet.behaviour is Behaviour.CLOCK or sheet.serving is Serving.TOKEN)
            assert len(bodies) == (visits[status, version] if moving else 1), path
            assert len({without_slot(body) for body in bodies}) == 1, path


def test_a_clock_shows_the_instant_of_the_request_and_differs_between_two_at_one_instant(site: Site) -> None:
    path = next(p for p in site.paths(START) if site.behaviour(p) is Behaviour.CLOCK)
    at = START + timedelta(days=3, hours=4, minutes=5, seconds=6)

    first, second = look(site, path, at, 1), look(site, path, at, 2)

    assert b"Sunday, 4 January 2026 at 04:05:06 UTC" in first.body
    assert first.body != second.body
    assert not site.changes(path, START, site.end)


def test_a_token_differs_in_every_answer_and_is_no_change(site: Site) -> None:
    path = next(p for p in site.paths(START) if site.serving(p) is Serving.TOKEN)

    bodies = {look(site, path, START, number).body for number in range(20)}

    assert len(bodies) == 20
    assert len({without_slot(body) for body in bodies}) == 1


def test_prices_change_by_one_digit(site: Site) -> None:
    prices = [
        [price.group(1) for v in range(len(sheet.changes) + 1) if (price := price_of(site, sheet, v))]
        for sheet in edited(site)
        if sheet.kind is SheetKind.PRODUCT
    ]
    steps = [(old, new) for series in prices for old, new in pairwise(series) if old != new]

    assert len(steps) > 100
    assert all(sum(a != b for a, b in zip(old, new, strict=True)) == 1 for old, new in steps)


def price_of(site: Site, sheet: Sheet, version: int) -> re.Match[bytes] | None:
    at = max(START, sheet.version_began(version))
    return re.search(rb'class="price">([0-9.]+) ', look(site, sheet.path, at).body)


@pytest.mark.parametrize("serving", HONEST)
def test_honest_validators_give_304_exactly_until_the_next_change(site: Site, serving: Serving) -> None:
    sheets = edited(site, serving)
    assert sheets
    for sheet in sheets:
        copy, change = copy_of(site, sheet.path, START), sheet.changes[0]

        assert look(site, sheet.path, change - SECOND, **copy).status == 304
        assert look(site, sheet.path, change, **copy).status == 200


def test_last_modified_is_the_instant_of_the_last_change(site: Site) -> None:
    sheet = max(edited(site, Serving.BOTH, Serving.LAST_MODIFIED), key=lambda sheet: len(sheet.changes))
    for change in sheet.changes:
        told = header(look(site, sheet.path, change + SECOND / 2), "Last-Modified")
        assert told is not None
        assert parsedate_to_datetime(told) == change


def test_a_frozen_liar_answers_304_although_its_page_has_changed(site: Site) -> None:
    for sheet in edited(site, Serving.LIAR_FROZEN):
        copy, later = copy_of(site, sheet.path, START), sheet.changes[-1]

        assert look(site, sheet.path, later, **copy).status == 304
        assert look(site, sheet.path, later).body != look(site, sheet.path, START).body
        assert copy_of(site, sheet.path, later) == copy


def test_the_other_liar_was_always_modified_just_now_and_never_answers_304(site: Site) -> None:
    for sheet in edited(site, Serving.LIAR_NOW):
        quiet = [at for at in (START + timedelta(hours=h) for h in range(24)) if not sheet.version(at)]
        told = [copy_of(site, sheet.path, at)["if_modified_since"] for at in quiet]

        assert [parsedate_to_datetime(date) for date in told if date] == quiet
        assert all(look(site, sheet.path, quiet[0], if_modified_since=date).status == 200 for date in told)


def test_every_page_can_be_reached_from_the_home_page_at_any_time(site: Site) -> None:
    for day in (0, 10, 45):
        at = START + timedelta(days=day)
        answering = {path for path in site.paths(at) if not site.sheet(path).is_broken(at)}
        assert walk(site, at) == answering


def test_pages_appear_vanish_and_move_at_their_instants(site: Site) -> None:
    for path, sheet in site.sheets_by_path.items():
        if sheet.since is not None:
            assert [look(site, path, at).status for at in (sheet.since - SECOND, sheet.since)] == [404, 200]
            parent = next(s for s in site.sheets_by_path.values() if path in s.lists and s.kind is SheetKind.LISTING)
            shown = [
                path in links(look(site, parent.path, at), parent.path) for at in (sheet.since - SECOND, sheet.since)
            ]
            assert shown == [False, True], parent.path
        if sheet.until is not None:
            assert look(site, path, sheet.until - SECOND).status == 200
            assert look(site, path, sheet.until).status == sheet.ends_as
        if sheet.moves_to is not None and sheet.until is not None:
            assert look(site, sheet.moves_to, sheet.until - SECOND).status == 404
            assert header(look(site, path, sheet.until), "Location") == sheet.moves_to
            old, new = look(site, path, sheet.until - SECOND), look(site, sheet.moves_to, sheet.until)
            assert old == new


def test_a_broken_page_recovers_as_it_was(site: Site) -> None:
    broken = [sheet for sheet in site.sheets_by_path.values() if sheet.broken]
    for sheet in broken:
        assert sheet.broken is not None
        begin, end = sheet.broken
        assert [look(site, sheet.path, at).status for at in (begin, end - SECOND, end)] == [500, 500, 200]
        assert site.is_same(sheet.path, begin, end)
    assert any(sheet.is_broken(START) for sheet in broken)


def test_robots_txt_closes_a_section_that_is_linked_and_would_answer(site: Site) -> None:
    assert f"Disallow: {DISALLOWED}".encode() in look(site, "/robots.txt", START).body
    assert DISALLOWED in links(look(site, "/about/", START), "/about/")
    assert look(site, DISALLOWED, START).status == 200
    assert not any(path.startswith(DISALLOWED) for path in site.paths(START))


def test_the_calendar_has_no_end() -> None:
    site, path = make_site(3, pages=80, start=datetime(2026, 11, 5, tzinfo=UTC)), f"{CALENDAR}2026-11/"
    assert path in links(look(site, "/news/", site.start), "/news/")
    seen = {path}
    for _ in range(40):
        (path,) = [p for p in links(look(site, path, site.start), path) if p.startswith(CALENDAR)]
        assert path not in seen
        seen.add(path)

    assert look(site, path, site.start).status == 200
    assert look(site, f"{CALENDAR}2026-13/", site.start).status == 404
    assert look(site, f"{CALENDAR}2026-1/", site.start).status == 404


def test_a_chain_of_redirects_leads_to_an_article(site: Site) -> None:
    path, statuses = CHAIN[0], []
    while (answer := look(site, path, START)).status != 200:
        statuses.append(answer.status)
        path = header(answer, "Location") or ""

    assert statuses == [301, 302, 308]
    assert site.sheet(path).kind is SheetKind.ARTICLE


def test_few_pages_get_many_links_and_most_get_few(site: Site) -> None:
    leaves = [sheet for sheet in site.sheets_by_path.values() if not sheet.lists and sheet.kind is not SheetKind.PLAIN]
    times = Counter(path for sheet in leaves for path in sheet.links)
    ordered = sorted((times[sheet.path] for sheet in leaves if sheet.since is None), reverse=True)

    assert sum(ordered[: len(ordered) // 10]) > 0.4 * sum(ordered)
    assert ordered[0] > 10 * max(1, median(ordered))


def test_rates_are_known_and_true() -> None:
    site = make_site(5, pages=1000, start=START, days=365)
    moved = [sheet for sheet in site.sheets_by_path.values() if sheet.behaviour is Behaviour.POISSON]
    rates = [sheet.rate_per_day for sheet in moved]
    expected = 365 * sum(rates)

    # A Poisson sum: four standard deviations on either side.
    assert abs(sum(len(sheet.changes) for sheet in moved) - expected) < 4 * expected**0.5
    assert 0.08 < median(rates) < 0.12
    assert max(rates) / min(rates) > 100


def test_pages_read_like_pages(site: Site) -> None:
    sizes = [len(look(site, path, site.end).body) for path in site.paths(site.end)]
    article = next(sheet for sheet in edited(site) if sheet.kind is SheetKind.ARTICLE)
    body = look(site, article.path, site.end).body.decode()

    assert 2_000 < median(sizes) < 20_000
    assert all(body.count(f"<{tag}") >= 1 for tag in ("header", "nav", "main", "article", "aside", "footer", "h1"))
    assert body.count("<p>") >= 4


def test_the_site_says_itself_which_pages_it_has_and_when_they_changed() -> None:
    at = START + timedelta(days=9, hours=5)
    home = make_site(2, start=START)
    here = Url("https://almanac.test/pages.xml")
    found = read_url_list(reply(home, Ask("/pages.xml"), at, 0).body, url=here, content_type="application/xml")
    assert [get_path_and_query(entry.url) for entry in found.entries] == list(home.paths(at))
    dates = {get_path_and_query(entry.url): entry.date for entry in found.entries}
    for path in home.paths(at):
        changes, date = home.changes(path, START, at), dates[path]
        if date is not None and changes and home.serving(path) is not Serving.LIAR_NOW:
            assert date.at == changes[-1].replace(microsecond=0)

    index = read_url_list(reply(home, Ask("/sitemap.xml"), at, 0).body, url=here, content_type="application/xml")
    assert [get_path_and_query(entry.url) for entry in index.entries] == ["/pages.xml", "/feed.xml"]
    feed = reply(home, Ask("/feed.xml"), at, 0)
    news = read_url_list(feed.body, url=here, content_type="application/xml").entries
    assert len(news) == 20
    assert reply(home, Ask("/feed.xml", dict(feed.headers)["ETag"]), at, 1).status == 304
