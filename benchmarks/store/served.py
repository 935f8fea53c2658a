"""How long the pages of one's own take over a filled database, and how much memory their server has."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from crawler.core.domain import Domain
from tests.server.conftest import Visitor, served

BAR_S = 2.0
BAR_BYTES = 100e6


@dataclass(frozen=True, slots=True)
class Shown:
    """One page as it was had. first_s, again_s: until its last byte.  resident: bytes of the server afterwards."""

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
    """Each page twice, in the order in which somebody would go through them; last, the most that the server had."""
    with served(url, home) as visitor:
        assert visitor.enter().status == 303
        for what, path in addresses(great, small, pages=pages):
            first, status, size = _asked(visitor, path)
            again, _, _ = _asked(visitor, path)
            yield Shown(what, status, size, first, again, visitor.resident())
        yield Shown("the most that it had", 200, 0, 0.0, 0.0, visitor.most_resident())


def addresses(great: Domain, small: str, *, pages: int) -> Iterator[tuple[str, str]]:
    """What there is to see, by the numbers of benchmarks/reading.py: of each state of a page one, and one unknown."""
    yield "all domains", "/"
    yield "the next domains", "/?" + urlencode({"after": "small3"})
    yield "a domain of half of all pages", "/domain?" + urlencode({"name": great.authority})
    yield "a small domain", "/domain?" + urlencode({"name": small})
    yield "changes", "/changes"
    yield "changes of all kinds", "/changes?kind=added&kind=changed&kind=gone"
    yield "changes of the domain", "/changes?" + urlencode({"domain": great.authority})
    half = pages // 2
    for what, near in (("changed", 0), ("unchanged", 1), ("new", 7), ("gone", 11), ("moved", 12), ("refused", 13)):
        n = half - half % 1000 - 1000 + near
        yield f"a page: {what}", "/page?" + urlencode({"url": f"{great.root}{n % 20}/page{n}"})
    n = half - half % 1000 - 1000
    of_changed = {"url": f"{great.root}{n % 20}/page{n}"}
    yield "a page, versions side by side", "/page?" + urlencode({**of_changed, "view": "sides"})
    yield "a page that is not known", "/page?" + urlencode({"url": f"{great.root}nowhere"})
    yield "pieces of a page", "/pieces?" + urlencode(of_changed)


def _asked(visitor: Visitor, path: str) -> tuple[float, int, int]:
    began = time.perf_counter()
    seen = visitor.get(path)
    return time.perf_counter() - began, seen.status, len(seen.text)
