"""The rules of robots.txt."""

import random
import string
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from crawler.core.http.robots import ALLOW_ALL, DISALLOW_ALL, MAX_ROBOTS_BYTES, parse_robots
from crawler.core.http.urls import Url, normalize_url

AGENT = "recrawl"


def allowed(body: str | bytes, path: str, agent: str = AGENT) -> bool:
    url = normalize_url(f"https://example.com{path}")
    assert url is not None
    return parse_robots(body if isinstance(body, bytes) else body.encode()).allows(url, agent)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/", "/anything", True),
        ("/fish", "/fish", True),
        ("/fish", "/fish.html", True),
        ("/fish", "/fishheads/yummy.html", True),
        ("/fish", "/Fish.asp", False),
        ("/fish", "/catfish", False),
        ("/fish*", "/fish.html", True),
        ("/fish/", "/fish/?id=anything", True),
        ("/fish/", "/fish", False),
        ("/*.php", "/folder/filename.php?parameters", True),
        ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/filename.php", True),
        ("/*.php$", "/filename.php?parameters", False),
        ("/*.php$", "/filename.php5", False),
        ("/fish*.php", "/fishheads/catfish.php?parameters", True),
        ("/a$", "/a", True),
        ("/a$", "/a/b", False),
        ("/*?*sort=", "/list?page=1&sort=up", True),
        ("/%7Euser", "/~user", True),
        ("/~user", "/%7Euser", True),
        ("/ü", "/%C3%BC", True),
        ("/%c3%bc", "/ü", True),
        ("/a%2Fb", "/a/b", False),
        ("", "/anything", False),
        ("/a b", "/a%20b", True),
    ],
)
def test_pattern_matches_by_the_standard(pattern: str, path: str, fits: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {pattern}", path) is not fits


@pytest.mark.parametrize(
    ("rules", "path", "ok"),
    [
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Disallow: /\nAllow: /p", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /robots.txt\nDisallow: /", "/robots.txt", True),
    ],
)
def test_longest_pattern_decides_and_allow_wins_a_tie(rules: str, path: str, ok: bool) -> None:
    assert allowed(f"User-agent: *\n{rules}", path) is ok


@pytest.mark.parametrize("agent", ["recrawl", "Recrawl", "otherbot", "thirdbot"])
def test_rules_of_a_shared_group_apply_to_each_agent(agent: str) -> None:
    body = "User-agent: otherbot\n# a comment\n\nUser-agent: Recrawl\nUser-Agent: thirdbot\nDisallow: /closed"
    assert not allowed(body, "/closed/a", agent)
    assert allowed(body, "/open", agent)
    assert allowed(body, "/closed/a", "somebody-else")


def test_groups_of_one_agent_are_joined() -> None:
    body = "User-agent: recrawl\nDisallow: /a\n\nUser-agent: *\nDisallow: /c\n\nUser-agent: recrawl\nDisallow: /b"
    assert [allowed(body, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_own_group_replaces_the_group_for_all_agents() -> None:
    body = "User-agent: *\nDisallow: /\n\nUser-agent: recrawl\nDisallow:"
    assert allowed(body, "/a")
    assert not allowed(body, "/a", "otherbot")


@pytest.mark.parametrize("name", ["rec", "recrawl-news", "r", "crawl", "myrecrawl", "recrawler"])
def test_group_for_a_similar_name_does_not_apply(name: str) -> None:
    assert allowed(f"User-agent: {name}\nDisallow: /", "/a")
    assert not allowed(f"User-agent: {name}\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a")


@pytest.mark.parametrize(
    "line",
    [
        "User-agent: recrawl/2.1",
        "user-agent:recrawl",
        "  USER-AGENT :  Recrawl  # us",
        "User-agent: recrawl/1.0 (+https://example.com/)",
        "User-agent: recrawl*",
        "User-agent: recrawl, thirdbot",
        "User-agent: thirdbot/2.0 (like Mozilla, mostly), Recrawl/1.0",
        "user agent recrawl",
        "useragent: recrawl",
    ],
)
def test_group_is_found_with_version_comment_or_odd_spelling(line: str) -> None:
    assert not allowed(f"{line}\nDisallow: /", "/a")
    assert allowed(f"{line}\nDisallow: /", "/a", "otherbot")


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /",
        b"User-agent: *\r\nDisallow: /\r\n",
        b"User-agent: x\rDisallow: /x\r\rUser-agent: recrawl/1.0\rDisallow: /",
        b"\n\n\nUser-agent: *\n\n\nDisallow: /",
        b"Sitemap: https://example.com/s.xml\nUser-agent: *\nSitemap: x\nDisallow: /",
        b"User-agent: *\nCrawl-delay: 1\nDisallow: /",
        b"User-agent: *\nNonsense: x\nmore nonsense\nDisallow: /",
        b"\xff\xfe junk\nUser-agent: *\nDisallow: /",
        b"User-agent: *\nDisallow: / # all of it",
        "\ufeffUser-agent: *\r\nDisallow: /".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /".encode("utf-16-be"),
    ],
)
def test_byte_order_marks_line_ends_and_unknown_lines_do_not_hide_rules(body: bytes) -> None:
    assert not allowed(body, "/a")


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>\nUser-agent: *\nDisallow: /\n</body></html>",
        b"\n\n  <html>\nUser-agent: *\nDisallow: /",
        b"\xef\xbb\xbf<HTML>\nUser-agent: *\nDisallow: /",
        b"Error\n<html><pre>\nUser-agent: *\nDisallow: /",
        b"<?xml version='1.0'?>\nUser-agent: *\nDisallow: /",
    ],
)
def test_the_body_of_an_error_page_is_not_parsed_as_rules(body: bytes) -> None:
    assert allowed(body, "/a")


def test_rules_count_up_to_the_last_complete_line_of_500_kb() -> None:
    filler = "User-agent: *\n" + "# filler\n" * ((MAX_ROBOTS_BYTES - 40) // 9)
    last = "Disallow: /within\n"
    inside = (filler + last).encode()
    assert len(inside) < MAX_ROBOTS_BYTES
    cut = inside + b"Disallow: /" + b"a" * MAX_ROBOTS_BYTES
    assert not allowed(cut, "/within")
    assert allowed(cut, "/aaa")
    assert allowed(inside + b"#" * MAX_ROBOTS_BYTES + b"\nDisallow: /beyond", "/beyond")


def test_first_part_of_a_long_file_counts_with_old_line_ends_or_utf_16() -> None:
    rules = "User-agent: *\nDisallow: /within\n" + "# filler\n" * (MAX_ROBOTS_BYTES // 9) + "Disallow: /beyond"
    for body in (rules.replace("\n", "\r").encode(), rules.encode("utf-16")):
        assert not allowed(body, "/within")
        assert allowed(body, "/beyond")


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("1", timedelta(seconds=1)),
        ("0.5", timedelta(seconds=0.5)),
        ("45", timedelta(seconds=45)),
        ("3600", timedelta(hours=1)),
        ("1e300", timedelta(days=30)),
        ("0", timedelta(0)),
        ("-1", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_crawl_delay_is_parsed_and_bounded(value: str, delay: timedelta | None) -> None:
    rules = parse_robots(f"User-agent: *\nCrawl-delay: {value}\nDisallow: /x".encode())
    assert rules.get_crawl_delay(AGENT) == delay
    assert rules.allows(Url("https://example.com/a"), AGENT)


def test_crawl_delay_comes_from_the_own_group() -> None:
    rules = parse_robots(b"User-agent: *\nCrawl-delay: 60\n\nUser-agent: recrawl\nCrawl-delay: 2")
    assert rules.get_crawl_delay("recrawl") == timedelta(seconds=2)
    assert rules.get_crawl_delay("otherbot") == timedelta(seconds=60)


def test_sitemaps_are_absolute_and_distinct() -> None:
    rules = parse_robots(
        b"Sitemap: https://EXAMPLE.com/a.xml\nUser-agent: x\nsitemap:https://example.com/a.xml\n"
        b"Sitemap: /relative.xml\nSitemap: ftp://example.com/b\nSitemap: https://other.org/b.xml.gz # more"
    )
    assert rules.sitemaps == ("https://example.com/a.xml", "https://other.org/b.xml.gz")


def test_allow_all_and_disallow_all() -> None:
    url = Url("https://example.com/a")
    assert ALLOW_ALL.allows(url, AGENT)
    assert ALLOW_ALL.get_crawl_delay(AGENT) is None
    assert ALLOW_ALL.sitemaps == ()
    assert not DISALLOW_ALL.allows(url, AGENT)


AGENTS = [b"User-agent: *", b"User-agent:", b"user agent recrawl", b"User-agent: recrawl/1"]
LINES = [b"Disallow: /", b"Allow: /*a*$", b"Disallow: %zz%", b"Crawl-delay: 1e999", b"Request-rate: 1/0"]
SCRAPS = [b"Sitemap: http://[", b"\xff", b"\x00", b"\xed\xa0\x80", b"#", b":", b"$", b"*", b"\r"]
lines = st.sampled_from([*AGENTS, *LINES, *SCRAPS])


@given(st.one_of(st.lists(lines).map(b"\n".join), st.binary()))
def test_any_bytes_can_be_parsed(body: bytes) -> None:
    rules = parse_robots(body)
    assert rules.allows(Url("https://example.com/a?b=%zz"), AGENT) in {True, False}
    assert rules.get_crawl_delay(AGENT) is None or rules.get_crawl_delay(AGENT) >= timedelta(0)  # type: ignore[operator]


def filled(lines: Iterable[str]) -> bytes:
    """Return a file of maximum length with these rules."""
    body = bytearray(b"User-agent: *\n")
    for line in lines:
        if len(body) + len(line) >= MAX_ROBOTS_BYTES:
            break
        body += line.encode() + b"\n"
    return bytes(body)


CHARS = string.ascii_lowercase + string.digits
some = random.Random(7)


def word(chars: int) -> str:
    return "".join(some.choices(CHARS, k=chars))


HEAVY: dict[str, Callable[[], bytes]] = {
    "folders": lambda: filled(f"Disallow: /private/{n}/*/x$" for n in count()),
    "prefixes within each other": lambda: filled("Disallow: /" + "a" * n for n in range(1, 2000)),
    "two words": lambda: filled(f"Disallow: /*{word(6)}*{word(6)}" for _ in count()),
    "parameters": lambda: filled(f"Disallow: /*?*p{n}=" for n in count()),
    "ends": lambda: filled(f"Disallow: *{n}$" for n in count()),
    "two pairs": lambda: filled(f"{some.choice(['allow', 'disallow'])}:*{word(2)}*{word(2)}" for _ in count()),
    "four letters": lambda: filled(f"disallow:*{'*'.join(word(4))}*~$" for _ in count()),
    "stars": lambda: filled("Disallow: /" + "*a" * n + "*b" for n in range(1, 1000)),
    "long pieces": lambda: filled(f"Disallow: /*{'a' * (n % 300 + 100)}b{'a' * (n // 3)}*c{n}" for n in count()),
}
HEAVIEST = ("two pairs", "four letters", "long pieces")
HEAVY_LINKS = {
    "a shop's": [f"/shop/category-{n % 40}/product-{n}.html?page={n % 7}&color=blue" for n in range(5000)],
    "of one letter": [f"/{n}/" + "a" * 100 for n in range(5000)],
    "escaped": [f"/wiki/%D0%9C%D0%BE%D1%81%D0%BA%D0%B2%D0%B0_{n}?x=%3D%26" for n in range(5000)],
}


@pytest.mark.parametrize(
    "rules", [pytest.param(name, marks=() if name in HEAVIEST else pytest.mark.soak) for name in HEAVY]
)
def test_five_thousand_links_are_fast_for_any_file(rules: str) -> None:
    parsed = parse_robots(HEAVY[rules]())
    parsed.allows(Url("https://example.com/"), AGENT)  # builds the index
    for links, paths in HEAVY_LINKS.items():
        urls = [Url(f"https://example.com{path}") for path in paths]
        began = time.process_time()
        for url in urls:
            parsed.allows(url, AGENT)
        assert time.process_time() - began < 0.5, links  # 0.01 to 0.07 s; without the index 10 s to 5 minutes


@pytest.mark.soak
def test_index_of_the_longest_file_is_built_quickly() -> None:
    for make_body in HEAVY.values():
        body = make_body()
        began = time.process_time()
        parse_robots(body).allows(Url("https://example.com/a"), AGENT)
        assert time.process_time() - began < 3  # 0.02 to 0.5 s


def test_path_that_almost_matches_thousands_of_rules_is_disallowed() -> None:
    """Otherwise it takes minutes, or a disallowed page is requested."""
    assert not allowed(HEAVY["two pairs"](), "/" + "".join(f"{a}{b}" for a in CHARS for b in CHARS)[:200] + "~")
    assert allowed(HEAVY["two words"](), "/" + "".join(f"{a}{b}" for a in CHARS for b in CHARS)[:200] + "~")


def test_many_rules_or_wildcards_do_not_disallow_other_paths() -> None:
    many = "User-agent: *\n" + "".join(f"Disallow: /private/{n}/*/x$\n" for n in range(4000))
    stars = "User-agent: *\nDisallow: /" + "*a" * 200 + "*b$"
    for body in (many, stars):
        rules = parse_robots(body.encode())
        assert all(rules.allows(Url(f"https://example.com/page/{n}/" + "a" * 100), AGENT) for n in range(100))
    assert not allowed(many, "/private/3999/a/x")
    assert allowed(many, "/private/3999/a/xx")
    assert not allowed(stars, "/" + "a" * 200 + "b")


ALPHABETS = ["ab/", "ab/?=&", "abcdef/", "ab$/", "abcdefghij/"]
SPECIAL = ["", "", "", "%3D", "%2f", "%2A", "%E2%82%AC", "€", "%7e", "%24", "index.html", " x", "[{|}]"]
alphabets = st.sampled_from(ALPHABETS)


@st.composite
def files_and_paths(draw: st.DrawFn) -> tuple[str, list[str]]:
    alphabet = draw(alphabets)
    part = st.text(alphabet + "*", max_size=8)
    pattern = st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["/", "*", "", "/x/"]),
        part,
        st.sampled_from(SPECIAL),
        st.sampled_from(["", "$", "*", "*$"]),
    )
    line = st.builds("{}: {}\n".format, st.sampled_from(["Allow", "Disallow", "dissalow"]), pattern)
    path = st.builds("/{}{}".format, st.text(alphabet, max_size=30), st.sampled_from(SPECIAL))
    return "User-agent: *\n" + "".join(draw(st.lists(line, max_size=25))), draw(st.lists(path, max_size=10))


@given(files_and_paths())
def test_decisions_agree_with_another_robots_parser(case: tuple[str, list[str]]) -> None:
    body, paths = case
    rules, other = parse_robots(body.encode()), Protego.parse(body)
    for path in paths:
        url = normalize_url(f"https://example.com{path}")
        assert url is not None
        assert rules.allows(url, AGENT) == other.can_fetch(url, AGENT), url
