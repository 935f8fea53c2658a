"""How much the pages of a template have brought of late, and whether that is too little to go on."""

from dataclasses import dataclass
from datetime import datetime, timedelta

HORIZON = 100.0  # looks that are remembered, about
HELD_LOOKS = 5.0  # remembered of a template whose pages are held back, so that two new pages let it go
TEMPLATE_LEAN = 5.0  # looks' worth of weight that a template's section has in it
SECTION_LEAN = 3.0  # and that the hope has which any section begins with: all is new
BARREN = 0.1  # share of new text in first looks below which a template's pages are held back,
FERTILE = 0.3  # and above which they are let go
ENOUGH_OF_TEMPLATE = 30  # looks, or
ENOUGH_OF_SECTION = 50
ASK_AGAIN_EVERY = timedelta(days=1)  # one page of each template that is held back
LONGEST_WAIT = timedelta(days=1000)  # of one page


@dataclass(frozen=True, slots=True)
class NoveltyEvidence:
    """First looks at pages, and how much of what they said was new (0 to 1 each); old ones fade."""

    looks: float = 0.0
    found: float = 0.0

    def after(self, novelty: float, *, horizon: float = HORIZON) -> "NoveltyEvidence":
        """With one more look."""
        kept = 1 - 1 / horizon
        return NoveltyEvidence(self.looks * kept + 1, self.found * kept + novelty)

    def __add__(self, other: "NoveltyEvidence") -> "NoveltyEvidence":
        return NoveltyEvidence(self.looks + other.looks, self.found + other.found)

    def share(self, *, expected: float, lean: float) -> float:
        """The share of new text, with `lean` looks' worth of what is expected anyway."""
        return (self.found + lean * expected) / (self.looks + lean)


NO_EVIDENCE = NoveltyEvidence()


@dataclass(slots=True)
class TemplateNovelty:
    """What is known of a template. Changed in place, while a batch is recorded.

    no: of the group.  held_until: the last time given to a page that is held back; None: pages are not held back.
    is_moving: pages that were found before still have to be held back, or let go.
    """

    no: int
    evidence: NoveltyEvidence = NO_EVIDENCE
    held_until: datetime | None = None
    is_moving: bool = False

    @property
    def is_held(self) -> bool:
        return self.held_until is not None

    def learn(self, novelty: float) -> None:
        self.evidence = self.evidence.after(novelty, horizon=HELD_LOOKS if self.is_held else HORIZON)

    def hold(self, at: datetime) -> None:
        """From now on its pages are held back, whatever it has brought long ago."""
        self.held_until, self.is_moving, self.evidence = at, True, NoveltyEvidence(HELD_LOOKS, 0.0)

    def let_go(self) -> None:
        self.held_until, self.is_moving = None, True


def time_after(last: datetime | None, at: datetime) -> datetime:
    """When the next page that is held back may be asked for: one an interval, whatever their number.

    last: when the page before it may be.
    """
    return min(max(last or at, at) + ASK_AGAIN_EVERY, at + LONGEST_WAIT)


def section_of(template: str) -> str:
    """The section of a template: its first folder, and whether there is a query."""
    path, mark, _ = template.partition("?")
    folders = path.split("/")[1:-1]
    return (folders[0] if folders else "") + mark


def is_barren(known: TemplateNovelty, section: NoveltyEvidence) -> bool:
    """Whether the pages of a template bring too little. section: the evidence of all its templates together.

    A trap whose URLs make ever new templates shows in its section; one barren template of a section that is not needs
    more looks of its own.
    """
    template = known.evidence
    if known.is_held:
        return template.found < FERTILE * template.looks
    if template.looks < ENOUGH_OF_TEMPLATE and section.looks < ENOUGH_OF_SECTION:
        return False
    expected = section.share(expected=1.0, lean=SECTION_LEAN)
    return template.share(expected=expected, lean=TEMPLATE_LEAN) < BARREN
