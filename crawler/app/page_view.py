"""A stored version of a page as safe HTML, with changed blocks marked in place or a link on each element."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from crawler.app.database import AppDatabase
from crawler.app.pages import VersionsQuery, compare_with
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.media_type import detect_kind
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.store import report
from crawler.store.report import VersionContent
from crawler.times import format_instant


@dataclass(frozen=True, slots=True)
class PageView:
    """A version of a page to be displayed.

    html: a fragment that cannot run or request anything; empty if there is none.  why_not: the reason for that.
    language: of the page; may be empty.
    """

    html: str = ""
    why_not: str = ""
    language: str = ""


async def view_version(
    db: AppDatabase, domain: Domain, url: Url, query: VersionsQuery, *, parsers: ParserPool, pick_prefix: str = ""
) -> PageView:
    """Return a version of a page for display, with its changes from another version.

    pick_prefix: the start of the links to pick an element, to which version and element are added (see `mark_page`);
    empty to mark changes instead.
    """
    content = await report.read_version(db, domain, url, number=query.after or None)
    why_not = explain_missing_view(content)
    if content is None or content.body is None or why_not:
        return PageView(why_not=why_not)
    from crawler.core.change.marked_page import mark_page  # noqa: PLC0415  only the view needs the sanitizer

    compared = None if pick_prefix else await compare_with(db, domain, content, query, parsers=parsers)
    prefix = f"{pick_prefix}&version={content.version.number}&picked=" if pick_prefix else ""
    body, content_type = content.body, content.version.content_type
    call = partial(
        mark_page,
        body,
        url=url,
        content_type=content_type,
        diff=compared.diff if compared is not None else None,
        pick_prefix=prefix,
    )
    response = Fetched(200, body, len(body), timedelta(0), content_type)
    html = await parsers.read(call, response, party=domain.id, needs_process=True)
    return PageView(html or "", "" if html else "it has no text, or it could not be read", content.version.language)


def explain_missing_view(content: VersionContent | None) -> str:
    """Return why a version cannot be displayed as a page; empty if it can."""
    if content is None:
        return "this version does not exist"
    if content.body is None:
        return (
            f"the body of version {content.version.number}, of {format_instant(content.version.at)}, is no longer "
            "stored; the setting keep_versions says how many versions of a page are kept"
        )
    if detect_kind(content.body, content.version.content_type) != "html":
        return f"it is not a web page, but {content.version.content_type or 'of unknown type'}; its text is stored"
    return ""
