"""The content of a generated page: real prose, and a box of facts that can be edited one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from html import escape
from random import Random
from typing import Literal

from benchmarks.change.dialect import Dialect, pick
from benchmarks.change.elements import of_tags
from benchmarks.change.source import PARAGRAPH_CHARS, Source

Shape = Literal["list", "table", "lines"]
SHAPES: tuple[Shape, ...] = ("list", "table", "lines")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts in the box. price is in cents; rows are labels with numbers."""

    price: int
    in_stock: bool
    opens: date
    rows: tuple[tuple[str, int], ...]
    picture: str
    caption: str
    author: str


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one page. description is the meta description; html is the prose."""

    title: str
    description: str
    html: str
    facts: Facts


def first_content(source: Source, dialect: Dialect, rng: Random) -> Content:
    """Return the content of a page before any edit."""
    words = source.title.split()
    counted = rng.sample(list(dialect.rows), 5)
    facts = Facts(
        price=rng.randrange(1_000, 99_999),
        in_stock=True,
        opens=date(2027, rng.randrange(1, 13), rng.randrange(1, 29)),
        rows=tuple((what, rng.randrange(3, 4_000)) for what in counted),
        picture=f"{rng.randrange(100, 999)}-{words[0].lower().strip('.,:')}",
        caption=f"{source.title}, {counted[0].lower()}",
        author=pick(rng, dialect.authors),
    )
    return Content(source.title, f"{source.title}: {' '.join(words[::-1])}", source.html, facts)


@dataclass(frozen=True, slots=True)
class Manner:
    """The way a section shows its facts. after: the number of paragraphs before the box."""

    shape: Shape
    heading: str
    price_label: str
    price: str
    opens_label: str
    opens: str
    stock: tuple[str, str]
    by: str
    after: int


def manner_of(dialect: Dialect, rng: Random) -> Manner:
    return Manner(
        shape=SHAPES[rng.randrange(len(SHAPES))],
        heading=pick(rng, dialect.facts),
        price_label=pick(rng, dialect.price_label),
        price=pick(rng, dialect.price),
        opens_label=pick(rng, dialect.opens_label),
        opens=pick(rng, dialect.opens),
        stock=dialect.stock[rng.randrange(len(dialect.stock))],
        by=pick(rng, dialect.by),
        after=rng.randrange(3),
    )


def facts_box(facts: Facts, manner: Manner, dialect: Dialect, *, names: Mapping[str, str], beside_price: str) -> str:
    """Render the box as HTML.

    names: class names by role.  beside_price: inline markup in the block of the price.
    """
    opens = dialect.instant(manner.opens, datetime.combine(facts.opens, datetime.min.time()))
    price = f"<b>{manner.price.format(p=dialect.amount(facts.price))}</b>{beside_price}"
    stock = manner.stock[0] if facts.in_stock else manner.stock[1]
    lines = [(manner.price_label, price, names["price"]), ("", stock, names["stock"]), (manner.opens_label, opens, "")]
    picture = f'<img src="/media/{escape(facts.picture)}.jpg" alt="{escape(facts.caption)}" width="320" height="200">'
    rows = "".join(f"<tr><td>{what}</td><td>{dialect.number(n)}</td></tr>" for what, n in facts.rows)
    match manner.shape:
        case "list":
            shown = "".join(f"<dt>{a or manner.heading}</dt><dd{_class(c)}>{b}</dd>" for a, b, c in lines)
            shown = f"<dl>{shown}</dl>"
        case "table":
            shown = "".join(f"<tr><th>{a}</th><td{_class(c)}>{b}</td></tr>" for a, b, c in lines)
            shown = f"<table><tbody>{shown}</tbody></table>"
        case "lines":
            shown = "".join(f"<p{_class(c)}>{a} {b}</p>" for a, b, c in lines)
    table = f"<table><tbody>{rows}</tbody></table>"
    return f'<div class="{names["facts"]}"><h2>{manner.heading}</h2>{picture}{shown}{table}</div>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


@lru_cache(maxsize=256)
def seams(html: str) -> tuple[int, ...]:
    """Return the offsets between top-level paragraphs, where a template may insert widgets."""
    asides = of_tags(html, "aside")
    ends = (each.end for each in of_tags(html, "p", chars=PARAGRAPH_CHARS))
    return tuple(end for end in ends if not any(each.start < end < each.end for each in asides)) or (len(html),)


def seam(html: str, number: int) -> int:
    places = seams(html)
    return places[min(number, len(places) - 1)]


def with_facts(content: Content, **changes: object) -> Content:
    return replace(content, facts=replace(content.facts, **changes))  # type: ignore[arg-type]
