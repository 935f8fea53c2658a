"""The text of one version of a sheet: its first version, with one edit after the other."""

from dataclasses import dataclass
from datetime import datetime
from random import Random

from labs.demo.site import prose
from labs.demo.site.chance import chance
from labs.demo.site.sheet import Sheet, SheetKind

NOTES_SHOWN = 8  # older ones are dropped


@dataclass(slots=True)
class Draft:
    """The content of a sheet while it is edited.

    paragraphs: their sentences.  notes: newest first.  prices: all prices so far in hundredths, newest last; empty if
    nothing is sold.
    """

    paragraphs: list[list[str]]
    notes: list[str]
    prices: list[int]


def draft(seed: int, sheet: Sheet, version: int) -> Draft:
    """Return the text of a version. Any two versions differ in a sentence, a digit of the price or a note."""
    topic = next(topic for topic in prose.TOPICS if topic.name == sheet.topic)
    table = first_draft(chance(seed, "first", sheet.path), sheet.kind, topic)
    for edit, at in enumerate(sheet.changes[:version]):
        revise(chance(seed, "edit", sheet.path, str(edit)), table, topic, at)
    return table


def first_draft(odds: Random, kind: SheetKind, topic: prose.Topic) -> Draft:
    fewest, most = {
        SheetKind.ARTICLE: (4, 9),
        SheetKind.NEWS: (2, 5),
        SheetKind.PRODUCT: (2, 4),
        SheetKind.TERM: (2, 4),
    }.get(kind, (1, 2))
    return Draft(
        paragraphs=[prose.paragraph(odds, topic) for _ in range(odds.randint(fewest, most))],
        notes=[prose.sentence(odds, topic) for _ in range(odds.randint(1, 3))],
        prices=[odds.randint(499, 29_999)] if kind is SheetKind.PRODUCT else [],
    )


def revise(odds: Random, table: Draft, topic: prose.Topic, at: datetime) -> None:
    """Make one edit: a digit of the price, a sentence, or an additional note."""
    if table.prices and odds.random() < 0.7:
        table.prices.append(repriced(odds, table.prices))
    elif odds.random() < 0.65:
        rewrite(odds, odds.choice(table.paragraphs), topic)
    else:
        table.notes.insert(0, f"{at:%-d %B %Y, %H:%M}: {prose.sentence(odds, topic)}")
        del table.notes[NOTES_SHOWN:]


def repriced(odds: Random, prices: list[int]) -> int:
    """Return the last price with one digit changed, and never an earlier price, or two versions could be equal."""
    digits = str(prices[-1])
    places = [(place, digit) for place in range(len(digits)) for digit in "0123456789"]
    odds.shuffle(places)
    candidates = (int(digits[:place] + digit + digits[place + 1 :]) for place, digit in places)
    return next(price for price in candidates if price not in prices and len(str(price)) == len(digits))


def rewrite(odds: Random, paragraph: list[str], topic: prose.Topic) -> None:
    place = odds.randrange(len(paragraph))
    old = paragraph[place]
    while paragraph[place] == old:
        paragraph[place] = prose.sentence(odds, topic)
