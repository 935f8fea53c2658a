"""URLs: their normal form, and which of them belong to a domain."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from ipaddress import ip_address
from itertools import starmap
from typing import NewType
from urllib.parse import quote

import ada_url
from publicsuffixlist import PublicSuffixList

from crawler.core.http.expressions import Expression

Url = NewType("Url", str)  # normalized: absolute, http or https, printable ASCII, at most MAX_URL_BYTES
PageKey = NewType("PageKey", bytes)  # 16 bytes
Authority = NewType("Authority", str)  # "docs.example.com", "127.0.0.1:8001"; without a default port

MAX_URL_BYTES = 8192
MAX_LINKS = 20_000  # of one page
MAX_LINK_CHARS = 8 << 20  # of all links of one page together, because a long base URL is added to each
MAX_INPUT_CHARS = 4 * MAX_URL_BYTES  # longer than a URL, because normalization removes tracking parameters etc.

# Tracking parameters of advertising and mailing systems. They do not affect the response.
_TRACKING = re.compile(
    r"""(?ix) (?:^|[?&])
    (?: (?:utm|mtm|hsa|oly|fb_action)_[^&=]* | pk_(?:campaign|content|keyword|kwd|medium|source)
      | _ga | _gl | _hsenc | _hsmi | _openstat | dclid | epik | fbclid | gad_source | gbraid | gclid | gclsrc
      | hsctatracking | igsh | igshid | irclickid | li_fat_id | mc_cid | mc_eid | mkt_tok | ml_subscriber(?:_hash)?
      | msclkid | rb_clickid | s_kwcid | srsltid | ttclid | twclid | vero_conv | vero_id | wbraid | wickedid
      | yclid | ysclid
    ) (?=[&=]|$)"""
)

# Links that normalization does not change: no escape, empty segment or dot segment, nor a colon that may end a scheme.
# Most links are of this kind, and joining them directly is five times faster than parsing.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*")
_FIRST_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_.~!$&'()*+,;=@-]*"
_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9_.~!$&'()*+,;=:@-]*"
_QUERY = r"(?:\?[A-Za-z0-9_.~!$&()*+,;=:@/-]+)?"
_PLAIN = re.compile(rf"(?:/(?:{_SEGMENT}/)*(?:{_SEGMENT})?|{_FIRST_SEGMENT}(?:/{_SEGMENT})*/?){_QUERY}")
# The same, absolute: the last part of the host has no digit, so that it is no address, and no part is in Punycode.
_PLAIN_HOST = r"(?:(?!xn--)[a-z0-9_-]{1,63}\.)*(?!xn--)[a-z][a-z-]{0,62}"
_PLAIN_ABSOLUTE = re.compile(rf"https?://{_PLAIN_HOST}/(?:{_SEGMENT}/)*(?:{_SEGMENT})?{_QUERY}")
# A parsed URL that needs no further normalization.
_HOST = r"(?:[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:.]+\])"
_DONE = re.compile(rf"https?://{_HOST}(?::\d+)?/[^%?]*(?:\?[^%]+)?")
_AUTHORITY = re.compile(rf"({_HOST})\.?(:\d+)?")
_MAX_HOST_CHARS = 253  # RFC 1035, as text
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, 2.3
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OTHER_SCHEME = re.compile(r"(?i:about|blob|data|file|ftp|javascript|mailto|tel|view-source|wss?|sftp|ssh|urn):")

UrlPattern = re.Pattern[str] | Expression  # `search` returns whether a path matches


class ExclusionReason(StrEnum):
    """Why a URL is not a page of a domain."""

    OTHER_DOMAIN = "other_domain"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not_included"
    URL_FILTER = "url_filter"
    TOO_DEEP = "too_deep"
    TOO_LONG = "too_long"


def normalize_url(text: str, *, base: Url | None = None) -> Url | None:
    """Return the normal form of a link's target, or None if it cannot be crawled.

    URLs are parsed as in browsers (WHATWG). Removed: the fragment, a default port, the final dot of a host, an empty
    query, tracking parameters. If no escape is broken, those of unreserved characters are decoded; the others are in
    upper case (RFC 3986, 6.2.2). The order of the query and the case of path and query are kept.
    None: another scheme, credentials in the URL, an invalid host, too long (MAX_INPUT_CHARS, MAX_URL_BYTES), or no URL.
    Invariant: normalize_url(u) == u for every result u, in printable ASCII.
    """
    text = text.partition("#")[0]
    if len(text) > MAX_INPUT_CHARS:
        return None
    try:
        href = ada_url.normalize_url(text) if base is None else ada_url.join_url(base, text)
    except ValueError:  # also for a lone surrogate
        return None
    return _finish_url(href)


def normalize_urls(hrefs: Iterable[str], *, base: Url) -> tuple[Url, ...]:
    """Return the distinct targets of a page's links in order of first appearance; invalid hrefs are skipped.

    At most MAX_LINKS, with about MAX_LINK_CHARS characters in total.
    """
    resolve = LinkResolver(base).resolve
    urls: dict[Url, None] = {}
    seen: set[str] = set()
    chars = 0
    for href in hrefs:
        link = href.partition("#")[0]
        if link in seen:
            continue
        seen.add(link)
        url = resolve(link)
        if url is not None and url not in urls:
            urls[url] = None
            chars += len(url)
            if len(urls) == MAX_LINKS or chars > MAX_LINK_CHARS:
                break
    return tuple(urls)


class LinkResolver:
    """Resolves links of a page. base: the base of relative links."""

    def __init__(self, base: Url) -> None:
        self._base = base
        self._origin = base[: base.index("/", 8)]
        self._origin_slash, self._origin_chars = f"{self._origin}/", len(self._origin)
        self._directory = base.partition("?")[0].rpartition("/")[0] + "/"
        self._max_path_chars = MAX_URL_BYTES - len(base)
        self._folders: dict[str, Url | None] = {}

    def resolve(self, link: str) -> Url | None:
        """Return what `normalize_url` returns for a link, but faster. link: without a fragment."""
        path = link[self._origin_chars :] if link.startswith(self._origin_slash) else link
        if path and len(path) < self._max_path_chars and _PLAIN.fullmatch(path) and not _has_tracking(path):
            return Url((self._origin if path[0] == "/" else self._directory) + path)
        if link[:4] == "http" and len(link) <= _MAX_HOST_CHARS and _PLAIN_ABSOLUTE.fullmatch(link):
            return normalize_url(link) if _has_tracking(link) else Url(link)
        folder, slash, name = link.rpartition("/")
        if slash and _PLAIN_NAME.fullmatch(name) and "?" not in folder:  # most links are to few folders
            if folder not in self._folders:
                self._folders[folder] = normalize_url(f"{folder}/", base=self._base)
            url = self._folders[folder]
            if url is not None and len(url) + len(name) <= MAX_URL_BYTES:
                return Url(url + name)
        return normalize_url(link, base=self._base)


def parse_user_url(text: str) -> Url:
    """Parse a URL that a user entered, possibly without a scheme or with spaces.

    The default scheme is http: a server that wants https redirects there, but a server without https does not respond
    to it. Raise ValueError with a message for the user if the URL is invalid.
    """
    text = text.strip()
    if not text:
        raise ValueError("the URL is empty")
    scheme = _SCHEME.match(text) or _OTHER_SCHEME.match(text)
    if scheme and scheme[0].lower() not in ("http://", "https://"):
        raise ValueError(f"only http and https can be crawled, not {_format_url(text)}")
    if not scheme:
        text = "http://" + text.removeprefix("//")
    url = normalize_url(text)
    if url is None:
        raise ValueError(_explain_invalid_url(text))
    return url


def compute_page_key(url: Url) -> PageKey:
    """Return the key of a page within its domain: a hash of its URL."""
    return PageKey(blake2b(url.encode(), digest_size=16).digest())


def get_authority(url: Url) -> Authority:
    """Return the host with the port, unless that is the default of the scheme."""
    return Authority(url.split("/", 3)[2])


def get_scheme(url: Url) -> str:
    """Return the scheme of a URL: http or https."""
    return url[: url.index(":")]


def get_path_and_query(url: Url) -> str:
    """Return path and query of a URL as on the request line."""
    return url[url.index("/", 8) :]


def get_host(authority: Authority) -> str:
    """Return the name or IP address (IPv6 without brackets), without the port."""
    if authority.startswith("["):
        return authority[1 : authority.index("]")]
    return authority.partition(":")[0]


def get_registrable_domain(authority: Authority) -> str:
    """Return the registrable domain of a name: "example.co.uk" for "docs.example.co.uk:8080".

    It is determined with the public suffix list, including private suffixes (each "someone.github.io" is separate).
    Return the host itself for an IP address, a public suffix or a name without dots.
    """
    host = get_host(authority)
    registered: str | None = None if _is_address(host) else _load_suffixes().privatesuffix(host)
    return registered or host


def get_public_suffix(authority: Authority) -> str | None:
    """Return the public suffix of a name: "co.uk" for "docs.example.co.uk:8080", "github.io" for a site there.

    None for an IP address or a name without a listed suffix ("localhost", "site.internal").
    """
    host = get_host(authority)
    suffix: str | None = None if _is_address(host) else _load_suffixes().publicsuffix(host, accept_unknown=False)
    return suffix


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    r"""The rules by which URLs are pages of one domain.

    authority, scheme: of the domain, after redirects of the root.  aliases: other authorities with the same pages.
    include: if not empty, a URL must match one pattern.  exclude: a URL must match none; takes precedence over include.
    max_depth: the maximum distance from the nearest seed, in links; None for any.
    accepts: an additional filter of normalized URLs of the domain, or None.

    Patterns are matched against path and query (get_path_and_query), as in robots.txt: a pattern matches every path
    that starts with it, `*` stands for any characters, a final `$` for the end. It must begin with "/" or "*". `/docs/`
    is that tree, `*.pdf$` every PDF, `*?*print=` every URL with that parameter. A pattern with the prefix `re:` is a
    regular expression (Expression) that may match anywhere: `re:/20\d\d/`. Raises ValueError, naming the pattern, if a
    pattern is invalid.
    """

    authority: Authority
    scheme: str = "https"
    aliases: frozenset[Authority] = frozenset()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int | None = None
    accepts: Callable[[Url], bool] | None = field(default=None, repr=False, compare=False)
    _root: str = field(init=False, repr=False, compare=False)
    _included: tuple[UrlPattern, ...] = field(init=False, repr=False, compare=False)
    _excluded: tuple[UrlPattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # because the class is frozen
        set_field(self, "_root", f"{self.scheme}://{self.authority}/")
        set_field(self, "_included", tuple(map(parse_pattern, self.include)))
        set_field(self, "_excluded", tuple(map(parse_pattern, self.exclude)))

    def to_domain_url(self, url: Url) -> Url:
        """Return the URL with the domain's scheme and authority if it is an alias of one of its pages.

        http and https are the same pages only on their default ports. On an explicit port, only one scheme works, so
        the scheme is not changed.
        """
        if url.startswith(self._root):
            return url
        authority = get_authority(url)
        same = authority == self.authority and ":" not in authority.rpartition("]")[2]
        return Url(self._root + get_path_and_query(url)[1:]) if same or authority in self.aliases else url

    def find_exclusion(self, url: Url, depth: int = 0) -> ExclusionReason | None:
        """Return why the URL is not in scope, or None if it is. depth: its distance from the nearest seed, in links.

        The depth is checked last, because it can change when another link to the URL is found.
        """
        url = self.to_domain_url(url)
        if not url.startswith(self._root):
            return ExclusionReason.OTHER_DOMAIN
        if len(url) > MAX_URL_BYTES:
            return ExclusionReason.TOO_LONG
        path = url[len(self._root) - 1 :]
        if any(pattern.search(path) for pattern in self._excluded):
            return ExclusionReason.EXCLUDED
        if self._included and not any(pattern.search(path) for pattern in self._included):
            return ExclusionReason.NOT_INCLUDED
        if self.accepts is not None and not self.accepts(url):
            return ExclusionReason.URL_FILTER
        if self.max_depth is not None and depth > self.max_depth:
            return ExclusionReason.TOO_DEEP
        return None


def _has_tracking(url: str) -> bool:
    return "?" in url and _TRACKING.search(url) is not None


def _finish_url(href: str) -> Url | None:
    """Apply the normalization that goes beyond the parser's."""
    if len(href) <= _MAX_HOST_CHARS and _DONE.fullmatch(href) and not _has_tracking(href):
        return Url(href)
    scheme, _, rest = href.partition("://")
    if scheme not in ("http", "https"):
        return None
    authority, _, rest = rest.partition("/")
    match = _AUTHORITY.fullmatch(authority)
    if match is None or len(match[1]) > _MAX_HOST_CHARS:  # also for credentials, which contain "@"
        return None
    path, _, query = rest.partition("?")
    url = f"{scheme}://{match[1]}{match[2] or ''}/{_unify_escapes(path)}"
    query = "&".join(pair for pair in _unify_escapes(query).split("&") if not _TRACKING.match(pair))
    if query:
        url = f"{url}?{query}"
    return Url(url) if len(url) <= MAX_URL_BYTES else None


def _unify_escapes(text: str) -> str:
    if "%" not in text:
        return text
    # A decoded digit could complete a broken escape ("%2%65" would become "%2e"), so decode nothing in that case.
    if _BROKEN_ESCAPE.search(text):
        return _ESCAPE.sub(lambda match: match[0].upper(), text)
    return _ESCAPE.sub(_unify_escape, text)


def _unify_escape(escape: re.Match[str]) -> str:
    decoded = chr(int(escape[1], 16))
    return decoded if decoded in _UNRESERVED else escape[0].upper()


@cache
def _load_suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # takes 40 ms and memory, so it is loaded on demand


def parse_pattern(text: str) -> UrlPattern:
    """Parse a pattern as described in Scope. Raise ValueError, naming the pattern, if it is invalid."""
    if text.startswith("re:"):
        try:
            return Expression(text[3:])
        except ValueError as error:
            raise ValueError(_name_pattern(text, str(error))) from error
    if not text.startswith(("/", "*")):
        raise ValueError(f"the pattern {text!r} must begin with '/', '*' or 're:'")
    ends = text.endswith("$")
    escaped = _unify_escapes(quote(text.removesuffix("$"), safe="/%*?&=:;,@!$'()+[]|~"))
    first, *others = (re.escape(part) for part in escaped.split("*"))
    last = rf".*{others.pop()}" if ends and others else ""
    # Atomic groups: the leftmost match of each part is sufficient, and patterns with many stars stay fast.
    between = "".join(rf"(?>.*?{part})" for part in others)
    return re.compile(rf"\A{first}{between}{last}" + (r"\Z" if ends else ""))


def get_literal_prefix(pattern: str) -> str:
    """Return the longest start that all paths have which match a pattern; "/" at least."""
    literal = "" if pattern.startswith("re:") else pattern.removesuffix("$").partition("*")[0]
    return _unify_escapes(quote(literal, safe="/%?&=:;,@!$'()+[]|~")) or "/"


def list_pattern_problems(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return why patterns are not supported, one sentence each (Expression.problem)."""
    parsed = ((text, parse_pattern(text)) for text in patterns)
    invalid = ((text, each.problem) for text, each in parsed if isinstance(each, Expression) and each.problem)
    return tuple(starmap(_name_pattern, invalid))


def _name_pattern(text: str, message: str) -> str:
    """Replace the expression by the whole pattern in a message."""
    return message.replace(repr(text[3:]), f"the pattern {text!r}", 1)


def _explain_invalid_url(text: str) -> str:
    if "@" in re.split(r"[/?#\\]", text.partition("://")[2], maxsplit=1)[0]:  # the URL is not repeated: logs show it
        return "a URL with a user name or password cannot be crawled"
    finding = f"the URL is longer than {MAX_URL_BYTES} bytes" if len(text) > MAX_URL_BYTES else "not a URL"
    return f"{finding}: {_format_url(text)}"


def _format_url(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
