"""Planning: what all domains together say about each, computed apart from the crawl and written for it to read."""

from datetime import datetime

from crawler.core.popularity import popularity
from crawler.store import plans
from crawler.store.database import Database


async def plan(db: Database, *, at: datetime) -> dict[int, float]:
    """Plan for all domains; gives the importance of each beside the others: by links (mean 1), times its weight."""
    links = await plans.links_between(db)
    by_links = popularity(list(links.weights), links.flows)
    importance = {domain: by_links[domain] * weight for domain, weight in links.weights.items()}
    await plans.write_importance(db, importance, at=at)
    return importance
