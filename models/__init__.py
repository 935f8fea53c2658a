"""The tables. No behaviour; importing this package gives the whole metadata."""

from sqlmodel import SQLModel

from models.change import Event, Feed, FeedReader
from models.domain import (
    AddressSlot,
    Calibration,
    Domain,
    DomainAlias,
    DomainMask,
    DomainPlan,
    DomainSoftErrors,
    DomainState,
    Inbox,
    KindPrior,
    Ledger,
    Pool,
    Prior,
    Robots,
    Rule,
)
from models.duplicate import FingerprintBand, FingerprintCursor, PageFingerprint
from models.figures import DomainFigures, FreshnessFigures, TopPage
from models.page import Cash, Content, Frontier, Page, PageLinks, SnapshotRow
from models.subscription import MessageRow, NoticeRow, SubscriptionRow
from models.url_list import Announced, UrlListRow
from models.visit import VisitPack, VisitRow

metadata = SQLModel.metadata
