"""recrawl pages: a domain's pages, the most important first."""

from datetime import UTC, datetime

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import shown_instant, shown_rate, shown_share
from crawler.core.cash import Order
from crawler.core.domain import Domain
from crawler.register import domain_named, require_not_before_last_visit
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import PageLine


def pages(text: str, *, top: int, at: datetime | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Domain, list[PageLine]]:
        domain = await domain_named(db, text)
        if at is not None:
            await require_not_before_last_visit(db, [domain], at)
        return domain, await report.pages(db, domain, top=top, at=at or datetime.now(UTC))

    domain, found = with_database(work)
    if as_json:
        print_json({"domain": domain.authority, "pages": found})
    elif not found:
        say(f"{domain.authority} has no pages yet: recrawl crawl {domain.authority}")
    else:
        parts = ["links", "by URL"] if domain.settings.ordering.order is Order.MIXED else []
        show(
            ["importance", *parts, "url", "state", "version", "changes", "fresh", "last look", "due"],
            [_page_row(page, parts=bool(parts)) for page in found],
            right=["importance", *parts, "version", "fresh"],
        )
    return DONE


def _page_row(page: PageLine, *, parts: bool) -> tuple[str, ...]:
    figures = (page.importance, page.popularity, page.url_score) if parts else (page.importance,)
    return (
        *(f"{figure:.2f}" if figure is not None else "-" for figure in figures),
        page.url,
        page.state.value + (f" ({page.reason or page.list_kind})" if page.reason or page.list_kind else ""),
        str(page.version),
        shown_rate(page.rate_per_day),
        shown_share(page.freshness),
        shown_instant(page.last_look_at),
        shown_instant(page.due_at) if page.due_at is not None else "-",
    )
