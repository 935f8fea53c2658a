"""URL lists: odd real-world lists, bombs, limits, and properties for any bytes."""

import gzip
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url
from crawler.core.page.lists.dates import ListDate, parse_list_date
from crawler.core.page.lists.list_text import decode_list
from crawler.core.page.lists.url_list import (
    MAX_ENTRIES,
    MAX_LIST_BYTES,
    ListEntry,
    UrlList,
    read_list_text,
    read_url_list,
)
from tests.core.page.url_list_cases import BROKEN, CASES, DATES, HERE, Case, loc, urlset


def read(body: bytes | str, content_type: str = "application/xml") -> UrlList:
    return read_url_list(body if isinstance(body, bytes) else body.encode(), url=Url(HERE), content_type=content_type)


def shown(entry: ListEntry) -> tuple[str, str | None]:
    path = entry.url.removeprefix("https://example.com")
    date = entry.date.at.astimezone(UTC).isoformat().removesuffix("+00:00") if entry.date else None
    return f"list:{path}" if entry.is_list else path, date


def test_there_are_enough_odd_cases() -> None:
    assert len({each.name for each in CASES}) == len(CASES) >= 60
    assert len(DATES) >= 10


@pytest.mark.parametrize("odd", CASES, ids=lambda each: each.name[:60])
def test_odd_list_is_read_as_intended(odd: Case) -> None:
    found = read_url_list(odd.body, url=Url(odd.url), content_type=odd.content_type)
    assert tuple(map(shown, found.entries)) == odd.entries
    assert (found.kind, found.finding, found.unusable) == (odd.kind, odd.finding, odd.unusable)


@pytest.mark.parametrize(
    "odd",
    [each for each in CASES if each not in BROKEN and len(each.body) < 1 << 20],
    ids=lambda each: each.name[:60],
)
def test_chunk_size_does_not_affect_a_list(odd: Case) -> None:
    whole = read_url_list(odd.body, url=Url(odd.url), content_type=odd.content_type)
    text = "".join(decode_list(odd.body, content_type=odd.content_type, max_bytes=MAX_LIST_BYTES))
    in_pieces = read_list_text(iter(text), url=Url(odd.url))
    assert in_pieces == whole


def test_entries_before_the_end_of_a_truncated_gzip_count() -> None:
    paths = [f"/{sha256(b'%d' % n).hexdigest()}" for n in range(2000)]
    found = read(gzip.compress(urlset("".join(map(loc, paths))).encode())[:-20_000])
    assert found.finding == "torn"
    assert 1000 < len(found.entries) < 2000
    assert [entry.url for entry in found.entries] == [
        f"https://example.com{path}" for path in paths[: len(found.entries)]
    ]


@given(st.binary(max_size=500), st.sampled_from(["application/xml", "text/plain; charset=utf-16", ""]))
def test_any_bytes_are_read(body: bytes, content_type: str) -> None:
    for bytes_ in (body, b"<urlset><url><loc>" + body, gzip.compress(body)[:-3], b"\x1f\x8b" + body):
        read(bytes_, content_type)


def test_claimed_change_intervals_are_only_a_weak_hint() -> None:
    claims = {
        "<changefreq>daily</changefreq>": timedelta(days=1),
        "<changefreq> Weekly </changefreq><priority>1.0</priority>": timedelta(days=3.5),
        "<changefreq>always</changefreq><priority>0.01</priority>": timedelta(hours=2),
        "<changefreq>never</changefreq><priority>high</priority>": timedelta(days=365),
        "<changefreq>now and then</changefreq>": None,
        "<priority>1.0</priority>": None,
    }
    for claim, gap in claims.items():
        assert [entry.change_interval for entry in read(urlset(loc(more=claim))).entries] == [gap], claim


def test_date_has_a_precision() -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    assert parse_list_date("2026-11-20") == ListDate(at, timedelta(days=1))
    assert parse_list_date("2026-11-20T00:00Z") == ListDate(at, timedelta(minutes=1))
    assert parse_list_date("2026-11-20T00:00:00Z") == ListDate(at, timedelta(seconds=1))
    month = parse_list_date("2026-11")
    assert month is not None
    assert month.end >= datetime(2026, 12, 1, tzinfo=UTC)


MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
ZONES = {  # minimum and maximum hours ahead of UTC
    "+02:00": (2, 2),
    "+0200": (2, 2),
    "-03:30": (-3.5, -3.5),
    "GMT+2": (2, 2),
    "UTC-5": (-5, -5),
    "GMT+05:30": (5.5, 5.5),
    "GMT": (0, 0),
    "Z": (0, 0),
    "CET": (1, 1),
    "cest": (2, 2),
    "JST": (9, 9),
    "EST": (-5, -5),
    "PDT": (-7, -7),
    "PT": (-8, -7),
    "ET": (-5, -4),
    "CST": (-6, 8),
    "IST": (1, 5.5),
    "XYZ": (-12, 14),
    "Europe/Vienna": (-12, 14),
}
TIMES = ["Fri, 20 Nov 2026 12:30:00 {}", "Fri Nov 20 12:30:00 {} 2026", "Nov 20, 2026, 12:30:00 PM {}"]
TIMES += ["2026-11-20 12:30:00 {}", "2026-11-20T12:30:00{}", "20.11.2026 12:30:00 {}", "20 November 2026 12:30 {}"]


@pytest.mark.parametrize("written", TIMES)
def test_zone_is_exact_or_the_span_covers_all_meanings(written: str) -> None:
    at, exact = datetime(2026, 11, 20, 12, 30, tzinfo=UTC), SECOND if ":00" in written else MINUTE
    zones = {zone: hours for zone, hours in ZONES.items() if not (written.endswith("2026") and "/" in zone)}
    found = {zone: parse_list_date(written.format(zone)) for zone in zones}

    assert found == {
        zone: ListDate(at - timedelta(hours=most), timedelta(hours=most - least) + exact)
        for zone, (least, most) in zones.items()
    }


@pytest.mark.parametrize("written", ["20 Nov 2026 12:30 +99:00", "2026 blog", "2026-11-20 draft", "at 12:30 or so"])
def test_text_that_resembles_a_zone_is_no_date(written: str) -> None:
    assert parse_list_date(written) is None


def test_equal_entries_have_equal_digests() -> None:
    plain, other = urlset(loc("https://example.com/a")), urlset("\n" + loc("/a") + "<!-- today -->", namespace="")
    assert read(plain).digest == read(other).digest
    assert read(plain).digest != read(urlset(loc("/b"))).digest
    assert read(plain).digest != read(urlset(loc("/a", "<lastmod>2026-11-20</lastmod>"))).digest


@pytest.mark.soak
def test_number_of_entries_is_limited_by_the_protocol() -> None:
    found = read(urlset("".join(loc(f"/{n}") for n in range(MAX_ENTRIES + 10))))
    assert len(found.entries) == MAX_ENTRIES
    assert found.finding == "too_many_entries"


@pytest.mark.soak
def test_gzip_bomb_ends_at_the_limit_with_little_memory() -> None:
    bomb = gzip.compress(urlset(loc() + " " * (8 * MAX_LIST_BYTES)).encode())
    tracemalloc.start()
    found = read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.finding == "too_large"
    assert [entry.url for entry in found.entries] == ["https://example.com/a"]
    assert peak < 4 << 20


@pytest.mark.soak
def test_list_of_a_million_entries_is_read_only_up_to_the_limit() -> None:
    given = 0

    def million() -> Iterator[str]:
        nonlocal given
        yield "<urlset>"
        for given in range(1_000_000):
            yield loc(f"/{given}")

    found = read_list_text(million(), url=Url(HERE))
    assert len(found.entries) == MAX_ENTRIES
    assert given < MAX_ENTRIES + 10_000


@pytest.mark.parametrize(
    "bomb",
    [
        "<urlset " + " ".join(f"a{n}='x'" for n in range(200_000)) + "/>",
        "<urlset " + " ".join(f"xmlns:a{n}='x'" for n in range(20_000)) + "/>",
        "<urlset>" + "<a/>" * 1_000_000,
        "<urlset><url><loc>" + "&amp;" * 1_000_000 + "</loc></url></urlset>",
        "<urlset><!--" + "-" * 10_000_000 + "--></urlset>",
        "<rss><channel><item><link>" + "<![CDATA[x]]>" * 500_000 + "</link></item></channel></rss>",
        "<feed xml:base='/" + "x" * 8000 + "/'>" + "<entry><link href='a'/></entry>" * 5000 + "</feed>",
    ],
    ids=["attributes", "namespaces", "elements", "references", "a comment", "CDATA", "a long base"],
)
def test_bombs_take_bounded_time(bomb: str) -> None:
    began = datetime.now(UTC)
    read(bomb)
    assert datetime.now(UTC) - began < timedelta(seconds=20)
