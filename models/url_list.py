"""What sites say themselves about their pages: which pages are URL lists, and the dates that those gave other pages."""

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlmodel import Field

from models.columns import DomainTable, PageTable, big, count, flag, instant, octets, real, text
from models.page import HASHED


class UrlList(DomainTable, table=True):
    """A page that is a URL list: a sitemap, an index, a feed or a text file (crawler/core/visit/lists.py).

    kind: "" for one that was never read.  found_by: how it became known.  worth: of a look that tells anything, in
    pages of mean importance.  entries, others, refused, unusable, finding: of the last look.  reads, told, new_pages,
    hints: of all looks.  hints_checked: of the hints, those that a look has tested since; hints_true: that were so;
    hints_expected: changes that were to be expected at these looks without them.
    """

    __table_args__ = (
        CheckConstraint("kind IN ('', 'sitemap', 'index', 'feed', 'text')", name="url_list_kind"),
        CheckConstraint("found_by IN ('robots', 'usual', 'page', 'list', 'body')", name="url_list_found_by"),
        CheckConstraint("worth >= 0 AND hints_true <= hints_checked", name="url_list_worth"),
    )
    key: bytes = Field(sa_column=octets(key=True))
    kind: str = Field(sa_column=text(default=""))
    found_by: str = Field(sa_column=text())
    found_at: datetime = Field(sa_column=instant())
    worth: float = Field(sa_column=real(default="1"))
    entries: int = Field(sa_column=count())
    others: int = Field(sa_column=count())
    refused: int = Field(sa_column=count())
    unusable: int = Field(sa_column=count())
    finding: str = Field(sa_column=text(default=""))
    reads: int = Field(sa_column=count())
    told: int = Field(sa_column=count())
    new_pages: int = Field(sa_column=big(default="0"))
    hints: int = Field(sa_column=big(default="0"))
    hints_checked: int = Field(sa_column=big(default="0"))
    hints_true: int = Field(sa_column=big(default="0"))
    hints_expected: float = Field(sa_column=real(default="0"))


class Announced(PageTable, table=True):
    """The last date that the lists of one source gave a page.

    list_key: of the list that gave it.  is_open: it tells of a change that no look has tested yet.
    """

    __table_args__ = (
        CheckConstraint("source IN ('sitemap', 'feed')", name="announced_source"),
        {"postgresql_partition_by": HASHED},
    )
    source: str = Field(sa_column=text(key=True))
    at: datetime = Field(sa_column=instant())
    list_key: bytes = Field(sa_column=octets())
    is_open: bool = Field(sa_column=flag())
