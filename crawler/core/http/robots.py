"""The rules of robots.txt (RFC 9309)."""

import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache

from crawler.core.http.rule_index import RuleIndex
from crawler.core.http.urls import Url, get_path_and_query, normalize_url

MAX_ROBOTS_BYTES = 500 * 1024  # RFC 9309, 2.5: at least so much is read
MAX_DELAY = timedelta(days=30)  # enough for an owner who wants no crawler; longer would overflow somewhere
CACHED_URLS = 4096  # menus and footers are asked about again on every page
ANY_AGENT = "*"

_LOOKS_LIKE_HTML = re.compile(r"(?i)\s*<|.{0,1024}<(?:!doctype|html|head|body)\b", re.DOTALL)
_COMMENT = re.compile(r"\([^)]*\)?")

# As owners write them; who leaves the colon out or slips on a key is understood.
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
_SITE_FIELDS = frozenset({_SITEMAP, "host"})  # these end no group


@dataclass(slots=True)
class _Group:
    """What one agent is told, in all groups that name it."""

    rules: list[tuple[bool, str]] = field(default_factory=list)
    delay: timedelta | None = None
    _decide: Callable[[str], bool] | None = None

    def add(self, name: str, value: str) -> None:
        if value and name in (_ALLOW, _DISALLOW):
            self.rules.append((name == _ALLOW, value))
        elif name == _DELAY and (delay := _parse_delay(value)) is not None:
            self.delay = delay

    def allows(self, path: str) -> bool:
        if self._decide is None:  # most files have groups for many agents, and one of them asks
            self._decide = lru_cache(CACHED_URLS)(RuleIndex(self.rules).allows)
        return self._decide(path)


_NO_RULES = _Group()


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one robots.txt.

    sitemaps: absolute, in the file's order, distinct.
    """

    sitemaps: tuple[Url, ...]
    _groups: Mapping[str, _Group]  # by product token, lower case

    def allows(self, url: Url, agent: str) -> bool:
        """Whether the agent may ask for the URL, by the longest pattern that fits; Allow wins a draw.

        agent: a product token ("recrawl"), in any case. The group of this very name counts, or else the group of
        everybody ("*"), never both. It takes a few microseconds, however many rules there are (RuleIndex).
        """
        group = self._find_group(agent)
        if not group.rules:
            return True
        path = get_path_and_query(url)
        return path == "/robots.txt" or path.startswith("/robots.txt?") or group.allows(path)

    def get_crawl_delay(self, agent: str) -> timedelta | None:
        """The delay between two requests that the agent's group wants, at most MAX_DELAY; None without one."""
        return self._find_group(agent).delay

    def _find_group(self, agent: str) -> _Group:
        return self._groups.get(agent.lower()) or self._groups.get(ANY_AGENT, _NO_RULES)


def parse_robots(body: bytes) -> RobotsRules:
    """The rules of a robots.txt, whatever the bytes: lines that are no rules are skipped, as is all of an HTML page.

    Only the first MAX_ROBOTS_BYTES count, up to the end of a line: half of a path would forbid more than the whole.
    """
    text = _decode_text(body[:MAX_ROBOTS_BYTES]).replace("\r", "\n")
    if len(body) > MAX_ROBOTS_BYTES:
        text = text.rpartition("\n")[0]
    if _LOOKS_LIKE_HTML.match(text):
        text = ""
    groups, sitemaps = _parse_groups(text)
    urls = (normalize_url(target) for target in sitemaps)
    return RobotsRules(sitemaps=tuple(dict.fromkeys(url for url in urls if url is not None)), _groups=groups)


def _parse_groups(text: str) -> tuple[dict[str, _Group], list[str]]:
    """What each agent is told, by its token, and the sitemaps."""
    groups: dict[str, _Group] = {}
    sitemaps: list[str] = []
    current: dict[str, _Group] = {}
    is_open = True  # the group may still be given names
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
    # Some write this mark and then something else; of two bytes for each character one is mostly zero.
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and b"\0" in body[2:1024]:
        return body.decode("utf-16", "replace")
    return body.removeprefix(BOM_UTF8).decode("utf-8", "replace")


def _parse_lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line's field and value, comments taken off; a field that nobody knows is _OTHER."""
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
    """The product tokens that a line names, lower case: "foo" and "bar" of "Foo/2.1 (compatible), bar*"."""
    for part in _COMMENT.sub("", value).split(","):
        words = part.partition("/")[0].split()
        if words:
            yield words[0].strip("*").lower() or ANY_AGENT


def _parse_delay(value: str) -> timedelta | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    is_delay = math.isfinite(seconds) and seconds >= 0
    return timedelta(seconds=min(seconds, MAX_DELAY.total_seconds())) if is_delay else None


ALLOW_ALL = parse_robots(b"")
DISALLOW_ALL = parse_robots(b"User-agent: *\nDisallow: /")
