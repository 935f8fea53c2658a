"""URL lists (sitemaps, feeds and text files) and sources of change signals: what each contributed, how reliable it is.

A URL list is a page of the domain. Sources are, for example, all sitemaps together, or a webhook.
"""

from datetime import datetime

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url
from crawler.store.database import Connection, Database
from crawler.store.rows import fetch_values

URL_LISTS = """
    SELECT p.url, l.*, f.state, f.due_at, p.last_visit_at
      FROM url_list l
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = l.key
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = l.key
     WHERE l.domain_id = %(domain_id)s AND (%(key)s::bytea IS NULL OR l.key = %(key)s)
     ORDER BY l.new_pages + l.hints DESC, p.url
"""
DATES = """
    SELECT a.source, a.at, a.is_open, p.url AS list_url
      FROM announced a LEFT JOIN page p ON p.domain_id = %(domain_id)s AND p.key = a.list_key
     WHERE a.domain_id = %(domain_id)s AND a.key = %(key)s
     ORDER BY a.source
"""
SOURCES = """
    SELECT o.*
      FROM report_source o JOIN domain_source n ON n.domain_id = o.domain_id AND n.source = o.source
     WHERE o.domain_id = %(domain_id)s ORDER BY n.no
"""


class ListReport(Struct, frozen=True):
    """A page that is a URL list. For most fields, see UrlList in models/page.py."""

    url: Url
    kind: str
    found_by: str
    entries: int
    others: int
    excluded: int
    unusable: int
    finding: str
    reads: int
    informative_reads: int
    new_pages: int
    hints: int
    hints_checked: int
    hints_true: int
    value: float
    state: str
    due_at: datetime | None
    last_visit_at: datetime | None


class AnnouncedDate(Struct, frozen=True):
    """The latest date that the URL lists of one source give for a page.

    list_url: the list with this date.  is_open: the date signals a change that no visit has checked.
    """

    source: str
    at: datetime
    is_open: bool
    list_url: Url | None


async def read_url_lists(db: Database, domain: Domain, *, key: PageKey | None = None) -> list[ListReport]:
    """Return the domain's URL lists, those that contributed most first. key: only the list of this page."""
    return await fetch_values(db, ListReport, URL_LISTS, {"domain_id": domain.id, "key": key})


async def list_announced_dates(db: Database, domain: Domain, key: PageKey) -> list[AnnouncedDate]:
    """Return the dates that URL lists give for a page."""
    return await fetch_values(db, AnnouncedDate, DATES, {"domain_id": domain.id, "key": key})


class SourceReport(Struct, frozen=True):
    """A source of change signals in a domain: a row of view report_source. For the fields, see its comments."""

    source: str
    signals: int
    recall: float
    precision: float | None
    effective_recall: float
    measured_at: datetime


async def list_signal_sources(executor: Connection | Database, domain: Domain) -> list[SourceReport]:
    """Return the domain's sources of change signals, by number."""
    return await fetch_values(executor, SourceReport, SOURCES, {"domain_id": domain.id})
