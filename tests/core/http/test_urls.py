"""The normal form of URLs, and which URLs belong to a domain."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http import urls
from crawler.core.http.urls import (
    MAX_URL_BYTES,
    Authority,
    ExclusionReason,
    LinkResolver,
    Scope,
    Url,
    compute_page_key,
    get_authority,
    get_host,
    get_path_and_query,
    get_registrable_domain,
    get_scheme,
    list_pattern_problems,
    normalize_url,
    normalize_urls,
    parse_user_url,
)

BASE = Url("https://www.example.com/docs/current/index.html?page=2")

# Text that is similar enough to URLs to reach every branch of the parser.
SCHEMES = "http: https: HTTP: mailto: javascript: file:"
MARKS = "// / \\ ? # & = : @ . .. ../ ./ | ' \" < > ^ ` { } [ ]"
ESCAPES = "% %2 %2e %2E %7e %65 %zz %00"
HOSTS = "[::1] 127.0.0.1 0x7f.1 example.com EXAMPLE.com. xn-- :80 :443 :8001"
WORDS = "a B 1 é 食 💥 x=1 utm_source=a fbclid=b &gclid"
ODD = [" ", "\t", "\n", "\x00", "\x1f", "\x7f", "\x85", "\ud800", "\udfff", "\u200b", "\ufeff", "\u2028"]
pieces = st.sampled_from([*f"{SCHEMES} {MARKS} {ESCAPES} {HOSTS} {WORDS}".split(), *ODD])
linkish = st.lists(pieces, max_size=12).map("".join)
anything = st.one_of(linkish, st.text(), st.text(st.characters(exclude_categories=())))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com:443/a#b", "https://example.com/a"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com/%7euser/%c3%a4", "http://example.com/~user/%C3%A4"),
        ("http://example.com/ä?ö=1", "http://example.com/%C3%A4?%C3%B6=1"),
        ("http://exämple.com/", "http://xn--exmple-cua.com/"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com.:8001/a", "http://example.com:8001/a"),
        ("http://example.com/a/../b/./c", "http://example.com/b/c"),
        ("http://example.com/a/%2e%2E/b", "http://example.com/b"),
        ("http://example.com//a//b", "http://example.com//a//b"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://example.com/a?b=2&a=1&b=2", "http://example.com/a?b=2&a=1&b=2"),
        ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
        ("http://example.com/100%", "http://example.com/100%"),
        ("http://example.com/%2%65", "http://example.com/%2%65"),
        (" \thttp://example.com/a\nb ", "http://example.com/ab"),
        ("http://example.com/\x00a", "http://example.com/%00a"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        ("http:\\\\example.com\\a", "http://example.com/a"),
    ],
)
def test_url_has_one_normal_form(text: str, url: str) -> None:
    assert normalize_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "mailto:a@example.com",
        "javascript:void(0)",
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/html,x",
        "http://",
        "http://user:secret@example.com/",
        "http://user@example.com/",
        "http://a..b/",
        "http://./",
        "http://" + "a" * 64 + ".com/",
        "http://" + "a." * 130 + "com/",
        "http://exa mple.com/",
        "http://example.com:99999/",
        "http://h!$&'()*+,;=/",
        "http://[::1/",
        "http://example.com/\ud800",
        "http://example.com/" + "a" * MAX_URL_BYTES,
        "http://example.com/" + "ä" * 1400,
    ],
)
def test_text_that_cannot_be_crawled_has_no_url(text: str) -> None:
    assert normalize_url(text) is None


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("utm_source=a&id=7&utm_medium=b", "?id=7"),
        ("UTM_Source=a", ""),
        ("fbclid=1&gclid=2&msclkid=3", ""),
        ("%75tm_source=a&id=7", "?id=7"),
        ("id=utm_source=a", "?id=utm_source=a"),
        ("nutm_source=a", "?nutm_source=a"),
        ("gclids=a&_gallery=1", "?gclids=a&_gallery=1"),
        ("a=1&&b=2", "?a=1&&b=2"),
    ],
)
def test_only_tracking_parameters_are_removed(query: str, kept: str) -> None:
    assert normalize_url(f"http://example.com/a?{query}") == f"http://example.com/a{kept}"


def test_case_of_the_path_is_significant() -> None:
    assert normalize_url("http://example.com/A?B=C") == "http://example.com/A?B=C"
    assert normalize_url("http://example.com/a?B=C") != normalize_url("http://example.com/A?B=C")


def test_url_of_8_kilobytes_is_not_truncated() -> None:
    url = "http://example.com/" + "a" * (MAX_URL_BYTES - len("http://example.com/"))
    assert normalize_url(url) == url
    assert normalize_urls([url, url + "a"], base=BASE) == (url,)
    assert normalize_urls(["a" * MAX_URL_BYTES], base=BASE) == ()


@given(anything)
def test_normalization_is_idempotent(text: str) -> None:
    once = normalize_url(text, base=BASE)
    if once is not None:
        assert normalize_url(once) == once
        assert normalize_url(once, base=BASE) == once
        assert parse_user_url(once) == once


@given(anything)
def test_normalized_url_is_printable_ascii(text: str) -> None:
    url = normalize_url(text, base=BASE)
    if url is not None:
        assert url.isascii()
        assert url.isprintable()
        assert " " not in url
        assert len(url) <= MAX_URL_BYTES
        assert "#" not in url
        assert "@" not in get_authority(url)


@given(st.lists(anything, max_size=20), st.lists(pieces.filter(str.isalnum), max_size=4))
def test_links_normalized_together_agree_with_single_links(hrefs: list[str], plain: list[str]) -> None:
    hrefs += [
        "/".join(plain),
        "/" + "/".join(plain),
        "../" + "-".join(plain),
        "https://www.example.com/" + "".join(plain),
    ]
    one_by_one = dict.fromkeys(normalize_url(href, base=BASE) for href in hrefs)
    one_by_one.pop(None, None)
    assert normalize_urls(hrefs, base=BASE) == tuple(one_by_one)


@given(st.from_regex(urls._PLAIN, fullmatch=True) | st.from_regex(urls._PLAIN_ABSOLUTE, fullmatch=True))
def test_plain_link_is_resolved_as_any_other(link: str) -> None:
    assert LinkResolver(BASE).resolve(link) == normalize_url(link, base=BASE)


def test_links_of_a_page_are_distinct_and_in_order() -> None:
    hrefs = ["b.html", "a.html#x", "a.html#y", "", "#top", "./b.html", "/", "?page=3", "//other.org/x", "mailto:me@x.y"]
    assert normalize_urls(hrefs, base=BASE) == (
        "https://www.example.com/docs/current/b.html",
        "https://www.example.com/docs/current/a.html",
        BASE,
        "https://www.example.com/",
        "https://www.example.com/docs/current/index.html?page=3",
        "https://other.org/x",
    )


def test_plain_links_take_less_than_five_microseconds_each() -> None:
    hrefs = [f"page-{n}.html#part" for n in range(1000)]
    began = time.process_time()
    for _ in range(10):
        normalize_urls(hrefs, base=BASE)
    assert (time.process_time() - began) / 10_000 < 5e-6  # 0.8 microseconds on a quiet machine


def test_page_key_has_16_bytes_and_differs_between_pages() -> None:
    keys = {compute_page_key(Url(f"https://example.com/{n}")) for n in range(1000)}
    assert len(keys) == 1000
    assert {len(key) for key in keys} == {16}


@pytest.mark.parametrize(
    ("url", "scheme", "authority", "host", "asked"),
    [
        ("https://docs.example.com/a?b=/c", "https", "docs.example.com", "docs.example.com", "/a?b=/c"),
        ("http://127.0.0.1:8001/", "http", "127.0.0.1:8001", "127.0.0.1", "/"),
        ("http://[::1]:8001/x", "http", "[::1]:8001", "::1", "/x"),
    ],
)
def test_parts_of_a_url(url: Url, scheme: str, authority: str, host: str, asked: str) -> None:
    assert (get_scheme(url), get_authority(url), get_path_and_query(url)) == (scheme, authority, asked)
    assert get_host(get_authority(url)) == host


@pytest.mark.parametrize(
    ("authority", "own"),
    [
        ("docs.example.com", "example.com"),
        ("docs.example.co.uk:8443", "example.co.uk"),
        ("someone.github.io", "someone.github.io"),
        ("a.someone.github.io", "someone.github.io"),
        ("github.io", "github.io"),
        ("localhost:8001", "localhost"),
        ("127.0.0.1:8001", "127.0.0.1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
    ],
)
def test_registrable_domain_follows_the_public_suffix_list(authority: str, own: str) -> None:
    assert get_registrable_domain(Authority(authority)) == own


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com", "http://example.com/"),
        ("  EXAMPLE.com/a b ", "http://example.com/a%20b"),
        ("http://[::1]:80", "http://[::1]/"),
        ("https://example.com/a", "https://example.com/a"),
        ("localhost:8001", "http://localhost:8001/"),
        ("//example.com/a", "http://example.com/a"),
        ("127.0.0.1:8001/a", "http://127.0.0.1:8001/a"),
    ],
)
def test_user_may_omit_the_scheme(text: str, url: str) -> None:
    assert parse_user_url(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (" \t", "empty"),
        ("file:///etc/passwd", "only http and https"),
        ("mailto:me@example.com", "only http and https"),
        ("gopher://example.com", "only http and https"),
        ("https://me:secret@example.com/", "user name"),
        ("what is this", "not a URL"),
        ("http://", "not a URL"),
        ("\x00", "not a URL"),
        ("example.com/" + "a" * 9000, "longer than"),
    ],
)
def test_error_explains_in_one_line_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_user_url(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    assert "secret" not in str(caught.value)


@given(anything)
def test_any_user_input_is_a_url_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        url = parse_user_url(text)
        assert normalize_url(url) == url


SCOPE = Scope(
    authority=Authority("www.example.com"),
    aliases=frozenset({Authority("example.com")}),
    include=("/docs/", "*.html$", "re:/20\\d\\d/"),
    exclude=("*?*print=", "/docs/old"),
    max_depth=3,
)


@pytest.mark.parametrize(
    ("url", "depth", "refusal"),
    [
        ("https://www.example.com/docs/a", 3, None),
        ("https://www.example.com/x/y.html", 0, None),
        ("https://www.example.com/x/y.html?a", 0, ExclusionReason.NOT_INCLUDED),
        ("https://www.example.com/blog/2026/x", 0, None),
        ("https://www.example.com/Docs/a", 0, ExclusionReason.NOT_INCLUDED),
        ("https://www.example.com/docs/old/a", 0, ExclusionReason.EXCLUDED),
        ("https://www.example.com/docs/a?x=1&print=1", 0, ExclusionReason.EXCLUDED),
        ("https://www.example.com/docs/a", 4, ExclusionReason.TOO_DEEP),
        ("https://example.com/docs/a", 0, None),
        ("http://example.com/docs/a", 0, None),
        ("http://www.example.com/docs/a", 0, None),
        ("https://www.example.com:8443/docs/a", 0, ExclusionReason.OTHER_DOMAIN),
        ("https://www.example.com.evil.org/docs/a", 0, ExclusionReason.OTHER_DOMAIN),
        ("https://other.example.com/docs/a", 0, ExclusionReason.OTHER_DOMAIN),
    ],
)
def test_exclusion_has_a_reason(url: str, depth: int, refusal: ExclusionReason | None) -> None:
    assert SCOPE.find_exclusion(Url(url), depth) == refusal


def test_alias_and_other_scheme_become_domain_urls() -> None:
    for url in ("http://example.com/a?b", "https://example.com/a?b", "http://www.example.com/a?b"):
        assert SCOPE.to_domain_url(Url(url)) == "https://www.example.com/a?b"
    assert SCOPE.to_domain_url(Url("https://other.org/a")) == "https://other.org/a"


def test_url_with_an_explicit_port_keeps_its_scheme() -> None:
    scope = Scope(authority=Authority("127.0.0.1:8001"), scheme="http")
    assert scope.to_domain_url(Url("https://127.0.0.1:8001/a")) == "https://127.0.0.1:8001/a"
    assert scope.find_exclusion(Url("https://127.0.0.1:8001/a")) is ExclusionReason.OTHER_DOMAIN
    assert scope.find_exclusion(Url("http://127.0.0.1:8001/a")) is None
    assert scope.find_exclusion(Url("http://127.0.0.1:8002/a")) is ExclusionReason.OTHER_DOMAIN
    six = Scope(authority=Authority("[::1]"), scheme="http")
    assert six.to_domain_url(Url("https://[::1]/a")) == "http://[::1]/a"


def test_url_that_is_too_long_as_a_domain_url_is_excluded() -> None:
    scope = Scope(authority=Authority("www.example.com"), aliases=frozenset({Authority("example.com")}))
    path = "a" * (MAX_URL_BYTES - len("https://example.com/") - 4)
    assert scope.find_exclusion(Url(f"https://example.com/{path}")) is None
    assert scope.find_exclusion(Url(f"https://example.com/{path}a")) is ExclusionReason.TOO_LONG


@pytest.mark.parametrize(
    ("pattern", "asked", "matches"),
    [
        ("/a", "/ab", True),
        ("/a$", "/ab", False),
        ("/a$", "/a", True),
        ("*", "/", True),
        ("/a*z", "/abcz/more", True),
        ("/a*z$", "/abcz/more", False),
        ("/a*b*c$", "/a-b-b-c-c", True),
        ("/a*b*c$", "/a-c-b", False),
        ("/a.b", "/axb", False),
        ("/ä", "/%C3%A4", True),
        ("/%7euser", "/~user", True),
        ("/a?b", "/a?b=1", True),
        ("re:\\.pdf$", "/a.pdf", True),
        ("re:^/a", "/b/a", False),
        (r"re:\.pdf\Z", "/a.pdf", True),
        (r"re:\A/(?P<year>\d{4})/", "/2026/a", True),
        (r"re:(?i)/PRINT\b", "/print/a", True),
        (r"re:\u002fprint", "/print", True),
        ("re:[]x[]", "/x", True),
    ],
)
def test_pattern_matches_like_robots_txt_or_as_a_regular_expression(pattern: str, asked: str, matches: bool) -> None:
    scope = Scope(authority=Authority("example.com"), exclude=(pattern,))
    assert (scope.find_exclusion(Url(f"https://example.com{asked}")) is ExclusionReason.EXCLUDED) is matches


@pytest.mark.parametrize("pattern", ["", "docs/", "re:(", "https://example.com/"])
def test_invalid_pattern_raises_an_error_that_names_it(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern") as caught:
        Scope(authority=Authority("example.com"), include=(pattern,))
    assert repr(pattern) in str(caught.value) or pattern in str(caught.value)


def test_patterns_with_many_stars_are_fast() -> None:
    scope = Scope(authority=Authority("example.com"), exclude=("/" + "*a" * 50 + "*b$", "/" + "*a" * 50 + "*b"))
    url = normalize_url("https://example.com/" + "a" * 8000)
    assert url is not None
    began = time.process_time()
    assert scope.find_exclusion(url) is None
    assert time.process_time() - began < 1


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:^(/?a?)*$", r"re:(\w+\s?)*\Z", "re:(a|a)*b", "re:(.*)*=(.*)*;"])
def test_regular_expressions_are_fast(pattern: str) -> None:
    scope = Scope(authority=Authority("example.com"), exclude=(pattern,))
    began = time.process_time()
    scope.find_exclusion(Url("https://example.com/" + "a" * 60 + "!"))
    scope.find_exclusion(Url("https://example.com/" + "a" * 8000 + "!"))
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "pattern", ["re:(?=a)", "re:(?<!a)b", r"re:(a)\1", "re:(?P<n>a)(?P=n)", "re:(?>a+)", "re:a{1001}"]
)
def test_pattern_that_needs_backtracking_has_a_refusal(pattern: str) -> None:
    (problem,) = list_pattern_problems(("/a", pattern, "*b"))
    assert problem.startswith(f"the pattern {pattern!r} is not supported, because it could run forever")
    assert "no look-around, no back-references" in problem
    assert (
        Scope(authority=Authority("example.com"), exclude=(pattern,)).find_exclusion(Url("https://example.com/ab"))
        is None
    )


def test_url_filter_applies_after_the_patterns() -> None:
    asked: list[Url] = []

    def accepts(url: Url) -> bool:
        asked.append(url)
        return not url.endswith("/day/")

    scope = Scope(Authority("a.example"), exclude=("/no/",), max_depth=3, accepts=accepts)

    assert scope.find_exclusion(Url("https://a.example/day/"), 9) is ExclusionReason.URL_FILTER
    assert scope.find_exclusion(Url("https://a.example/x")) is None
    assert scope.find_exclusion(Url("https://a.example/no/day/")) is ExclusionReason.EXCLUDED
    assert scope.find_exclusion(Url("https://b.example/day/")) is ExclusionReason.OTHER_DOMAIN
    assert asked == ["https://a.example/day/", "https://a.example/x"]
