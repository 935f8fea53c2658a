"""A site of 1,011 real pages beside a trap: endless URLs without new content.

The real pages are a tree with ten links per page, and nine on the last level but one. The root and all ten sections
link to the first page of the trap.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.engine.crawls import answered, answering

FAN = (10, 10, 9)
LEVELS = ("part", "chapter", "page")
REAL = 1 + 10 + 100 + 900
_SYLLABLES = [first + vowel + last for first in "bdfgklmnprst" for vowel in "aeiou" for last in "lmnrst"]

Links = list[str]


def words(seed: str, many: int, *, vocabulary: int = 6000) -> str:
    """Return made-up text, the same for the same seed."""
    chance = random.Random(seed)
    kinds = (
        f"{_SYLLABLES[n % 360]}{_SYLLABLES[n // 360 % 360]}" for n in iter(lambda: chance.randrange(vocabulary), -1)
    )
    return " ".join(next(kinds) for _ in range(many))


def real_paths() -> list[str]:
    paths = [""]
    level = [""]
    for name, fan in zip(LEVELS, FAN, strict=True):
        level = [f"{above}/{name}{n}" for above in level for n in range(fan)]
        paths += level
    return paths


def page(title: str, text: str, links: Links) -> bytes:
    menu = "".join(f'<li><a href="{link}">{link.strip("/") or "home"}</a>' for link in links)
    body = f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p><ul>{menu}</ul>"
    return (body + "</body></html>").encode()


@dataclass(slots=True)
class Trap:
    """A trap. entrance: its first URL.  answer: returns text and links of one of its pages, or None if it is none."""

    entrance: str
    answer: Callable[[str], tuple[str, str, Links] | None]


def calendar() -> Trap:
    """Return a trap with one page per month, linked to the previous and next months and to all its days."""

    def answer(path: str) -> tuple[str, str, Links] | None:
        parts = path.removeprefix("/calendar/").strip("/").split("/")
        if not path.startswith("/calendar/"):
            return None
        first = date(int(parts[0]), int(parts[1]), 1)
        if len(parts) == 3:
            day = first + timedelta(days=int(parts[2]) - 1)
            text = f"{day:%A}, {day:%d %B %Y}. Nothing takes place on this day."
            return (
                text,
                text,
                [f"/calendar/{day:%Y/%m}/", *(f"/calendar/{day + timedelta(days=d):%Y/%m/%d}/" for d in (-1, 1))],
            )
        after, before = first + timedelta(days=31), first - timedelta(days=1)
        days = [f"/calendar/{first:%Y/%m}/{n:02}/" for n in range(1, 29)]
        text = f"{first:%B %Y}. Mo Tu We Th Fr Sa Su. There are no events this month."
        return f"Events in {first:%B %Y}", text, [f"/calendar/{after:%Y/%m}/", f"/calendar/{before:%Y/%m}/", *days]

    return Trap("/calendar/2026/11/", answer)


def facets() -> Trap:
    """Return a shop of forty products, filtered by any of eight properties in any order."""
    names = ["color", "size", "brand", "price", "stock", "sort", "view", "rating"]

    def answer(path: str) -> tuple[str, str, Links] | None:
        parts = urlsplit(path)
        if parts.path != "/shop":
            return None
        chosen = parse_qsl(parts.query)
        chance = random.Random(repr(sorted(chosen)))
        shown = sorted(chance.sample(range(40), 12))
        text = "</p><p>".join(f"Item {words(f'product {n}', 6)}. {n * 3 + 5}.99" for n in shown)
        left = [name for name in names if name not in dict(chosen)]
        return "Shop", text, [f"/shop?{urlencode([*chosen, (name, n)])}" for name in left for n in range(4)]

    return Trap("/shop", answer)


def path_trap() -> Trap:
    """Return a trap with a folder below each folder, three links per page, and a few words."""

    def answer(path: str) -> tuple[str, str, Links] | None:
        if not path.startswith("/x/"):
            return None
        return "Index", f"Index of {path}. Choose a folder.", [f"{path}{name}/" for name in "abc"]

    return Trap("/x/a/", answer)


def soft_404() -> Trap:
    """Return a trap of not-found pages with status 200 and relative links."""

    def answer(path: str) -> tuple[str, str, Links] | None:
        if not path.startswith("/shop/"):
            return None
        text = f"Sorry, we could not find {path} on this server. Try our start page or one of these."
        return "Not found", text, ["news/", "offers/", "help/", "contact/"]

    return Trap("/shop/", answer)


def endless_prose() -> Trap:
    """Return a trap with new words on each page and three links; its text does not reveal that it is generated."""

    def answer(path: str) -> tuple[str, str, Links] | None:
        if not path.startswith("/tale/"):
            return None
        n = int(path.split("/")[2])
        return f"Tale {n}", words(path, 80), [f"/tale/{3 * n + k}/" for k in (1, 2, 3)]

    return Trap("/tale/0/", answer)


NO_TRAP = Trap("", lambda _path: None)
TRAPS: Mapping[str, Callable[[], Trap]] = {
    "calendar": calendar,
    "facets": facets,
    "path": path_trap,
    "soft 404": soft_404,
    "session ids": lambda: NO_TRAP,
    "prose": endless_prose,
    "none": lambda: NO_TRAP,
}


@dataclass(slots=True)
class TrappedSite:
    """The pages of a site with a trap. asked: each requested path, in order.

    has_events: whether the trap's pages have new content.  is_walled: whether a wall hides all pages."""

    kind: str
    trap: Trap = field(init=False)
    real: frozenset[str] = field(init=False)
    asked: list[str] = field(default_factory=list)
    has_events: bool = False
    is_walled: bool = False

    def __post_init__(self) -> None:
        self.trap = TRAPS[self.kind]()
        self.real = frozenset(f"{path}/" for path in real_paths())

    def respond(self, target: str) -> bytes:
        path = urlsplit(target).path
        if path == "/robots.txt":
            return answered(404, b"")
        self.asked.append(path if path in self.real else target)
        if self.is_walled:
            return answered(200, page("Stop", "Please show us that you are no robot, and come back in a moment.", []))
        if path in self.real:
            return answered(200, self._real_page(path))
        found = self.trap.answer(target)
        if found is None:
            return answered(404, b"")
        title, text, links = found
        return answered(200, page(title, f"{text} {words(target, 40)}" if self.has_events else text, links))

    def _real_page(self, path: str) -> bytes:
        depth = path.count("/") - 1
        links = [f"{path}{LEVELS[depth]}{n}/" for n in range(FAN[depth])] if depth < len(FAN) else []
        if path != "/":
            links += ["/", path[: path.rstrip("/").rindex("/") + 1]]
        if self.trap.entrance and depth <= 1:
            links.append(self.trap.entrance)
        if self.kind == "session ids":  # a new one for each request without one, as crawlers keep no cookies
            links = [f"{link}?sid={random.Random(f'{len(self.asked)}').getrandbits(64):016x}" for link in links]
        return page(f"Page {path}", words(path, 80), links)

    def found_within(self, requests: int) -> int:
        """Return how many real pages were requested within this many requests."""
        return len(self.real & set(self.asked[:requests]))


@asynccontextmanager
async def trapped_site(kind: str) -> AsyncIterator[tuple[str, TrappedSite]]:
    """Run the site on a loopback port until the block ends."""
    site = TrappedSite(kind)
    async with answering(site.respond) as url:
        yield url, site
