"""The rules of robots.txt (RFC 9309)."""

import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache

from msgspec import Struct, field

from crawler.core.http.rule_index import RuleIndex
from crawler.core.http.urls import Url, get_path_and_query, normalize_url

MAX_ROBOTS_BYTES = 500 * 1024  # RFC 9309, 2.5: the minimum that a crawler must read
MAX_DELAY = timedelta(days=30)  # larger values would overflow dates
CACHED_URLS = 4096  # links in menus and footers are checked again on every page
ANY_AGENT = "*"

_LOOKS_LIKE_HTML = re.compile(r"(?i)\s*<|.{0,1024}<(?:!doctype|html|head|body)\b", re.DOTALL)
_COMMENT = re.compile(r"\([^)]*\)?")

# The names of fields include common misspellings. A missing colon is also accepted.
_AGENT, _ALLOW, _DISALLOW, _SITEMAP, _DELAY, _OTHER = "agent", "allow", "disallow", "sitemap", "delay", "other"
_FIELDS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), _AGENT),
    "allow": _ALLOW,
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    **dict.fromkeys(("sitemap", "sitemaps", "site-map"), _SITEMAP),
    **dict.fromkeys(("crawl-delay", "crawl delay"), _DELAY),
    **dict.fromkeys(("request-rate", "request rate", "visit-time", "visit time"), _OTHER),
    "host": "host",
}
_SITE_FIELDS = frozenset({_SITEMAP, "host"})  # these do not end a group


class _Group(Struct):
    """The rules for one agent, from all groups that name it."""

    rules: list[tuple[bool, str]] = field(default_factory=list)
    delay: timedelta | None = None
    _decide: Callable[[str], bool] | None = None

    def add(self, name: str, value: str) -> None:
        if value and name in (_ALLOW, _DISALLOW):
            self.rules.append((name == _ALLOW, value))
        elif name == _DELAY and (delay := _parse_delay(value)) is not None:
            self.delay = delay

    def allows(self, path: str) -> bool:
        if self._decide is None:  # built on demand: files have groups for many agents, but only one is used
            self._decide = lru_cache(CACHED_URLS)(RuleIndex(self.rules).allows)
        return self._decide(path)


_NO_RULES = _Group()


class RobotsRules(Struct, frozen=True):
    """The rules of one robots.txt.

    sitemaps: absolute, in the file's order, distinct.
    """

    sitemaps: tuple[Url, ...]
    _groups: Mapping[str, _Group]  # by product token, lower case

    def allows(self, url: Url, agent: str) -> bool:
        """Return whether the agent may request a URL. The longest matching pattern decides; Allow wins a tie.

        agent: a product token ("recrawl"), in any case. Only the group with this name applies, or else the group "*".
        robots.txt itself is always allowed.
        """
        group = self._find_group(agent)
        if not group.rules:
            return True
        path = get_path_and_query(url)
        return path == "/robots.txt" or path.startswith("/robots.txt?") or group.allows(path)

    def get_crawl_delay(self, agent: str) -> timedelta | None:
        """Return the Crawl-delay of the agent's group, at most MAX_DELAY, or None."""
        return self._find_group(agent).delay

    def _find_group(self, agent: str) -> _Group:
        return self._groups.get(agent.lower()) or self._groups.get(ANY_AGENT, _NO_RULES)


def parse_robots(body: bytes) -> RobotsRules:
    """Parse a robots.txt. Any bytes are accepted: invalid lines are skipped, and so are HTML pages.

    Only the first MAX_ROBOTS_BYTES count, up to the last complete line: a truncated path would disallow too much.
    """
    text = _decode_text(body[:MAX_ROBOTS_BYTES]).replace("\r", "\n")
    if len(body) > MAX_ROBOTS_BYTES:
        text = text.rpartition("\n")[0]
    groups, sitemaps = _parse_groups("" if _LOOKS_LIKE_HTML.match(text) else text)
    return RobotsRules(sitemaps=tuple(dict.fromkeys(filter(None, map(normalize_url, sitemaps)))), _groups=groups)


def _parse_groups(text: str) -> tuple[dict[str, _Group], list[str]]:
    """Return the rules of each agent, by its token, and the sitemaps."""
    groups: dict[str, _Group] = {}
    sitemaps: list[str] = []
    current: dict[str, _Group] = {}
    is_open = True  # whether a further User-agent line belongs to the same group
    for name, value in _parse_lines(text):
        if name == _AGENT:
            named_groups = {agent: groups.setdefault(agent, _Group()) for agent in _parse_agents(value)}
            current = current | named_groups if is_open else named_groups
        elif name == _SITEMAP and value:
            sitemaps.append(value)
        else:
            for group in current.values():
                group.add(name, value)
        if name not in _SITE_FIELDS:
            is_open = name == _AGENT
    return groups, sitemaps


def _decode_text(body: bytes) -> str:
    # Some files have a UTF-16 BOM but another encoding. In UTF-16, one of the two bytes per character is usually zero.
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and b"\0" in body[2:1024]:
        return body.decode("utf-16", "replace")
    return body.removeprefix(BOM_UTF8).decode("utf-8", "replace")


def _parse_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the field and value of each line, without comments. An unknown field is _OTHER."""
    for raw_line in text.splitlines():
        line = raw_line.partition("#")[0].strip()
        if not line:
            continue
        name, colon, value = line.partition(":")
        field_name = _FIELDS.get(name.strip().lower()) if colon else None
        if field_name is None and not (colon and (not value or value[0].isspace())):
            field_name, value = _parse_without_colon(line)
        if field_name is not None or colon:
            yield field_name or _OTHER, value.strip()


def _parse_without_colon(line: str) -> tuple[str | None, str]:
    words = line.split()
    for count in (1, 2):
        field_name = _FIELDS.get(" ".join(words[:count]).lower())
        if field_name is not None:
            return field_name, " ".join(words[count:])
    return None, ""


def _parse_agents(value: str) -> Iterator[str]:
    """Yield the product tokens of a line in lower case: "foo" and "bar" for "Foo/2.1 (compatible), bar*"."""
    for part in _COMMENT.sub("", value).split(","):
        words = part.partition("/")[0].split()
        if words:
            yield words[0].strip("*").lower() or ANY_AGENT


def _parse_delay(value: str) -> timedelta | None:
    with suppress(ValueError):
        seconds = float(value)
        if math.isfinite(seconds) and seconds >= 0:
            return timedelta(seconds=min(seconds, MAX_DELAY.total_seconds()))
    return None


ALLOW_ALL = parse_robots(b"")
DISALLOW_ALL = parse_robots(b"User-agent: *\nDisallow: /")
