"""Pages whose whole text is replaced every few days: a large change is a change, and reported at once."""

import random
from datetime import datetime, timedelta

import pytest

from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, answered, answering, crawl, register, rows

PAGES, LIVELY = 20, 10
DAYS = 56
FRAME = "<nav><a href=/>Home</a><p>Products and prices</p></nav>{}<footer><p>All rights are reserved</p></footer>"


class Papers:
    """Twenty pages; half of the words of ten of them are replaced every third day. frame: around each text."""

    def __init__(self, frame: str) -> None:
        self.frame, self.now = frame, START

    def text_of(self, n: int, at: datetime) -> str:
        """Return a text in which each word lasts six days, and half of them are replaced every third day."""
        days = (at - START) // (3 * DAY) if n < LIVELY else 0
        chosen = (random.Random(f"{n} {place} {(days + place % 2) // 2}") for place in range(120))
        return " ".join("".join(chance.choices("abcdefghiklmnoprstu", k=7)) for chance in chosen)

    def respond(self, path: str) -> bytes:
        if path == "/":
            links = "".join(f"<a href=/{n}>page {n}</a> " for n in range(PAGES))
            inside = f"<h1>All papers</h1><p>{links}</p>"
        elif path.strip("/").isdigit():
            n = int(path.strip("/"))
            inside = f"<h1>Paper {n}</h1><p>{self.text_of(n, self.now)}</p>"
        else:
            return answered(404, b"")
        return answered(200, f"<html><body>{self.frame.format(inside)}</body></html>".encode())


@pytest.mark.soak
@pytest.mark.parametrize(
    ("frame", "most"),
    [pytest.param(FRAME, 0, id="framed"), pytest.param("{}", LIVELY, id="bare", marks=pytest.mark.soak)],
)
async def test_a_text_that_is_replaced_again_and_again_is_a_change_each_time(
    db: Database, frame: str, most: int
) -> None:
    """most: visits that are in doubt. Without a frame around the text, each page at most once, until
    the first doubt was resolved."""
    site = Papers(frame)
    async with answering(site.respond) as url:
        await register(db, url, budget_per_day=5)
        for hour in range(0, DAYS * 24, 12):
            site.now = START + timedelta(hours=hour)
            await crawl(db, at=site.now, settings=QUICK)

    found = dict(await rows(db, "SELECT change, count(*) FROM visit GROUP BY change"))
    doubted = dict(await rows(db, "SELECT reason, count(*) FROM visit WHERE change = 'unknown' GROUP BY reason"))
    assert found["changed"] >= 40
    assert sum(doubted.values()) <= most, doubted
