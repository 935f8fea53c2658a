"""The tables. No behaviour; importing this package gives the whole metadata."""

from sqlmodel import SQLModel

from models.change import Event, Feed
from models.domain import AddressSlot, Domain, DomainAlias, DomainPlan, DomainState, Inbox, Pool, Robots
from models.page import Cash, Content, Frontier, Page, PageLinks, SnapshotRow
from models.visit import VisitRow

metadata = SQLModel.metadata

__all__ = [
    "AddressSlot",
    "Cash",
    "Content",
    "Domain",
    "DomainAlias",
    "DomainPlan",
    "DomainState",
    "Event",
    "Feed",
    "Frontier",
    "Inbox",
    "Page",
    "PageLinks",
    "Pool",
    "Robots",
    "SnapshotRow",
    "VisitRow",
    "metadata",
]
