"""Listings announce pages: the value of visiting one depends on the new pages that its changes brought."""

import pytest

from crawler.store.database import Database
from tests.engine.crawls import DAY, START, rows
from tests.engine.scripted import Said, Scripted, scripted, text

TOPICS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "knoll", "ledge", "marsh")
ENDINGS = ("ish", "ly", "ous", "ness", "ment", "able", "ward", "wise", "like", "less", "ful", "hood", "ship", "dom")
LISTINGS = ("/news", "/chat", "/echo")


def publish(site: Scripted, day: int) -> None:
    """Change all listings every day. News links to a new page, echo to one with the text of an earlier page."""
    topics = TOPICS[: day + 1]
    site.pages["/"] = text("home", *LISTINGS)
    site.pages["/news"] = text(f"news of {topics[-1]}", *(f"/story/{topic}" for topic in topics))
    site.pages["/chat"] = text(f"chat about {topics[-1]}")
    site.pages["/echo"] = text(f"echo of {topics[-1]}", *(f"/copy/{topic}" for topic in topics))
    for topic in topics:
        words = " ".join(topic + ending for ending in ENDINGS)
        site.pages[f"/story/{topic}"] = Said(
            body=f"<title>{topic}</title><main><p>{words}</p><p>{words[::-1]}</p></main>"
        )
        site.pages[f"/copy/{topic}"] = text("what everybody has said before")


async def lived(db: Database) -> None:
    """Crawl the site on each of eleven days."""
    async with scripted(db, {}) as (site, domain):
        publish(site, 0)
        await site.crawl(db, at=START)
        for day in range(1, len(TOPICS)):
            publish(site, day)
            await site.recrawl(db, domain, at=START + day * DAY)


@pytest.mark.soak
async def test_a_listing_is_known_by_the_new_pages_that_it_brought_and_looked_at_sooner(db: Database) -> None:
    await lived(db)
    found = await rows(db, "SELECT p.url, p.announces, f.due_at FROM page p JOIN frontier f USING (domain_id, key)")
    announces = {url.rsplit("/", 1)[1]: many for url, many, _ in found}
    due = {url.rsplit("/", 1)[1]: at for url, _, at in found}

    assert announces["news"] > 0.7
    assert announces["chat"] == 0
    assert announces["echo"] < 0.7 * announces["news"]
    assert all(announces[topic] == 0 for topic in TOPICS)
    assert due["news"] < due["chat"]


@pytest.mark.soak
async def test_a_page_never_fetched_is_worth_what_first_looks_at_such_pages_brought(db: Database) -> None:
    await lived(db)
    share = "SELECT template, visit_importance(1, true, 0, first_visits, novelty) FROM prior WHERE first_visits > 5"
    worth = dict(await rows(db, share))

    assert worth["/story/*"] > 0.9
    assert worth["/copy/*"] < 0.4
