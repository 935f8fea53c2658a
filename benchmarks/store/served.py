"""Measure the response times of the web UI over a filled database, and the memory of its server."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from crawler.core.domain import Domain
from tests.server.conftest import Visitor, served_by_process

BAR_S = 2.0  # limit of a response
BAR_BYTES = 100e6  # limit of the server's memory


@dataclass(frozen=True, slots=True)
class Shown:
    """One web page. first_s, again_s: seconds until the last byte of two requests. resident: bytes of the server
    afterwards.
    """

    what: str
    status: int
    size: int
    first_s: float
    again_s: float
    resident: int

    @property
    def is_within(self) -> bool:
        return self.status == 200 and max(self.first_s, self.again_s) < BAR_S and self.resident < BAR_BYTES


def shown(url: str, home: Path, great: Domain, small: str, *, pages: int) -> Iterator[Shown]:
    """Request each page twice, in the order of a typical visit; finally, report the peak memory of the server."""
    with served_by_process(url, home) as visitor:
        assert visitor.log_in().status == 303
        for what, path in addresses(great, small, pages=pages):
            first, status, size = _timed_get(visitor, path)
            again, _, _ = _timed_get(visitor, path)
            yield Shown(what, status, size, first, again, visitor.resident())
        yield Shown("peak memory", 200, 0, 0.0, 0.0, visitor.most_resident())


def addresses(great: Domain, small: str, *, pages: int) -> Iterator[tuple[str, str]]:
    """Yield web pages by name: one of each state, with the numbering of benchmarks/store/reading.py, and an unknown
    one.
    """
    yield "all domains", "/"
    yield "next domains", "/?" + urlencode({"after": "small3"})
    yield "domain with half of all pages", "/domain?" + urlencode({"name": great.authority})
    yield "small domain", "/domain?" + urlencode({"name": small})
    yield "changes", "/changes"
    yield "changes of all kinds", "/changes?kind=added&kind=changed&kind=gone"
    yield "changes of the domain", "/changes?" + urlencode({"domain": great.authority})
    half = pages // 2
    for what, near in (
        ("changed", 0),
        ("unchanged", 1),
        ("unfetched", 7),
        ("gone", 11),
        ("moved", 12),
        ("excluded", 13),
    ):
        n = half - half % 1000 - 1000 + near
        yield f"page: {what}", "/page?" + urlencode({"url": f"{great.root}{n % 20}/page{n}"})
    n = half - half % 1000 - 1000
    of_changed = {"url": f"{great.root}{n % 20}/page{n}"}
    yield "page: versions side by side", "/page?" + urlencode({**of_changed, "view": "sides"})
    yield "page: unknown", "/page?" + urlencode({"url": f"{great.root}nowhere"})
    yield "blocks of a page", "/blocks?" + urlencode(of_changed)


def _timed_get(visitor: Visitor, path: str) -> tuple[float, int, int]:
    began = time.perf_counter()
    seen = visitor.get(path)
    return time.perf_counter() - began, seen.status, len(seen.text)
