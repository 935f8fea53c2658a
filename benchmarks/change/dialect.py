"""The words, formats and class names from which generated sites are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from random import Random
from typing import Literal


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# The roles of class names. Each dialect has one stem for each role.
ROLES = words(
    "header nav main side foot clock today ago views readers ad banner more form facts price stock by "
    "notice note wrap panel"
)
Layout = Literal["landmarks", "boxes", "table"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The language of one kind of site. A field with several strings offers a choice.

    Times use {h} {i} {s} {d} {m} {y} {month} {weekday}; counts use {n}; authors use {a}.
    stems: stems of class names, in the order of ROLES.
    calls: pairs of A/B test wordings.
    price: {p} is the amount, with `mark` between whole units and cents.
    """

    language: str
    months: Sequence[str]
    weekdays: Sequence[str]
    thousands: str
    mark: str
    stems: Sequence[str]
    styles: Sequence[str]  # of class names: {role} is a stem, {code} a few letters of the site's build
    layouts: Sequence[Layout]
    menu: Sequence[str]
    menu_later: Sequence[str]
    clock: Sequence[str]
    today: Sequence[str]
    seconds_ago: Sequence[str]
    days_ago: Sequence[str]
    views: Sequence[str]
    readers: Sequence[str]
    render_time: Sequence[str]
    ads: Sequence[str]
    banners: Sequence[str]
    more: Sequence[str]
    notice: Sequence[str]
    footer: Sequence[str]
    comment: Sequence[str]
    calls: Sequence[tuple[str, str]]
    csrf: Sequence[str]
    session: Sequence[str]
    nonce: Sequence[str]
    form: Sequence[str]
    price: Sequence[str]
    facts: Sequence[str]
    price_label: Sequence[str]
    opens_label: Sequence[str]
    opens: Sequence[str]
    stock: Sequence[tuple[str, str]]
    rows: Sequence[str]
    authors: Sequence[str]
    by: Sequence[str]

    def __post_init__(self) -> None:
        assert len(self.stems) == len(ROLES)
        assert (len(self.months), len(self.weekdays)) == (12, 7)

    def instant(self, template: str, at: datetime) -> str:
        return template.format(
            h=f"{at.hour:02}",
            i=f"{at.minute:02}",
            s=f"{at.second:02}",
            d=at.day,
            m=f"{at.month:02}",
            y=at.year,
            month=self.months[at.month - 1],
            weekday=self.weekdays[at.weekday()],
        )

    def number(self, n: int) -> str:
        return f"{n:,}".replace(",", self.thousands)

    def amount(self, cents: int) -> str:
        return f"{cents // 100}{self.mark}{cents % 100:02}"

    def spoken(self) -> frozenset[str]:
        """Return the words and formats that only this dialect uses, without those that languages or standards share."""
        common = {"language", "months", "layouts", "styles", "thousands", "mark", "nonce"}
        names = (each.name for each in fields(self) if each.name not in common)
        values = (value for name in names for value in getattr(self, name))
        return frozenset(text for value in values for text in ((value,) if isinstance(value, str) else value))


def pick(rng: Random, choices: Sequence[str]) -> str:
    return choices[rng.randrange(len(choices))]
