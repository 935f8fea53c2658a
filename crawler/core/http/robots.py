"""The rules of robots.txt (RFC 9309)."""

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from protego import Protego

from crawler.core.http.urls import Url, normalise

MAX_BYTES = 500 * 1024  # RFC 9309, 2.5: at least so much is read
LONGEST_DELAY = timedelta(days=30)  # enough for an owner who wants no crawler; longer would overflow somewhere
REMEMBERED_URLS = 4096  # menus and footers are asked about again on every page
ANYBODY = "*"

_AGENT_LINE = re.compile(r"(?im)^([ \t]*user[- ]?agent[ \t]*:)([^\r\n#]*)")
_LOOKS_LIKE_HTML = re.compile(rb"(?i)\s*<|.{0,1024}<(?:!doctype|html|head|body)\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one robots.txt.

    sitemaps: absolute, in the file's order, distinct.
    """

    sitemaps: tuple[Url, ...]
    _agents: frozenset[str]  # that have a group of their own, lower case
    _parsed: Protego
    _can_fetch: Callable[[str, str], bool]

    def allows(self, url: Url, agent: str) -> bool:
        """Whether the agent may ask for the URL, by the longest pattern that fits; Allow wins a draw.

        agent: a product token ("recrawl"), in any case. The group of this very name counts, or else the group of
        everybody ("*"), never both.
        """
        return self._can_fetch(url, self._group_of(agent))

    def crawl_delay(self, agent: str) -> timedelta | None:
        """The delay between two requests that the agent's group wants, at most LONGEST_DELAY; None without one."""
        seconds = self._parsed.crawl_delay(self._group_of(agent))
        return None if seconds is None else timedelta(seconds=min(seconds, LONGEST_DELAY.total_seconds()))

    def _group_of(self, agent: str) -> str:
        agent = agent.lower()
        # Looked up here, since the library takes a group for "rec" as one for "recrawl".
        return agent if agent in self._agents else ANYBODY


def parse_robots(body: bytes) -> RobotsRules:
    """The rules of a robots.txt, whatever the bytes: lines that are no rules are skipped, as is all of an HTML page.

    Only the first MAX_BYTES count, up to the end of a line: half of a path would forbid more than the whole.
    """
    if len(body) > MAX_BYTES:
        body = body[:MAX_BYTES].rpartition(b"\n")[0]
    body = body.removeprefix(BOM_UTF8).replace(b"\r", b"\n")
    if _LOOKS_LIKE_HTML.match(body):
        body = b""
    text = _AGENT_LINE.sub(_with_plain_token, body.decode("utf-8", "replace"))
    parsed = Protego.parse(text)
    sitemaps = (normalise(target) for target in parsed.sitemaps)
    return RobotsRules(
        sitemaps=tuple(dict.fromkeys(url for url in sitemaps if url is not None)),
        _agents=frozenset(_token(match[2]).lower() for match in _AGENT_LINE.finditer(text)),
        _parsed=parsed,
        _can_fetch=lru_cache(REMEMBERED_URLS)(parsed.can_fetch),
    )


def _with_plain_token(line: re.Match[str]) -> str:
    return f"{line[1]} {_token(line[2])}"


def _token(value: str) -> str:
    """The product token alone: "Foo" of "Foo/2.1 (compatible)"; an asterisk at either end of it says nothing."""
    words = value.partition("/")[0].split()
    return (words[0].strip("*") or ANYBODY) if words else ""


ALLOW_ALL = parse_robots(b"")
REFUSE_ALL = parse_robots(b"User-agent: *\nDisallow: /")
