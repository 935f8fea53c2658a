"""The two texts of a page: what is compared, and what a reader would call the page."""

import json

from crawler.store.database import Database
from tests.engine.crawls import DAY, START, crawl, register, rows
from tests.engine.doors import Asked, Reply, door
from tests.engine.test_walls import prose

NOTICE = "Our readers keep this garden alive with their letters, visits and gifts of seeds since the spring of 1961."
PAGES = 24


def serve(asked: Asked) -> Reply:
    """Return a root that links to pages with own prose, code and a notice that all of them have."""
    if asked.target == "/robots.txt":
        return Reply("User-agent: *\nAllow: /", headers=())
    number = asked.target.strip("/")
    if asked.target == "/":
        return Reply("<title>All</title>" + "".join(f"<p><a href=/{n}>{n}</a>" for n in range(PAGES)))
    own = "".join(f"<p>{prose(7 * int(number) + n, 40).capitalize()}." for n in range(3))
    code = f"<pre>def plant():\n    return {number}\n</pre>"
    about = json.dumps({"@type": "Article", "author": {"name": "Ada"}, "datePublished": "2026-02-01"})
    script = f'<script type="application/ld+json">{about}</script>'
    return Reply(f"<title>Page {number}</title>{script}<h1>Page {number}</h1>{own}{code}<p>{NOTICE}")


READ = "SELECT url, content, text, confidence, metadata FROM page_text ORDER BY at, url"


async def test_content_leaves_out_what_the_pages_of_the_domain_share_and_text_does_not(db: Database) -> None:
    async with door(serve) as server:
        await register(db, server.url)
        await crawl(db, at=START, pages=15)
        await crawl(db, at=START + DAY / 24)
    found = [each for each in await rows(db, READ) if not each[0].endswith("/")]

    assert len(found) == PAGES
    assert all(NOTICE in text for _, _, text, _, _ in found)
    assert not any(NOTICE in content for _, content, _, _, _ in found[-5:])
    assert all("def plant():\n    return" in content for _, content, _, _, _ in found[-5:])
    assert all("def plant():\n    return" in text for _, _, text, _, _ in found)
    assert all(confidence > 0.8 for _, _, _, confidence, _ in found[-5:])
    assert found[0][4] | {"json_ld": []} == {"author": "Ada", "published": "2026-02-01", "json_ld": []}
