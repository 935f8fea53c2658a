"""The kinds of edits: each makes a new version of a page in the eyes of a reader."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from random import Random

from benchmarks.change.content import Content, with_facts
from benchmarks.change.elements import (
    Element,
    elements,
    found_in,
    of_tags,
    replaced,
    words_in,
)

LONG_PAGE_WORDS = 800
SECTION_CHARS = 150

Edit = Callable[[Content, Content, Random], Content | None]
"""Return the edited page, or None if the edit does not apply. The second page is another of the site, to borrow
from.
"""


def digit_changed(text: str, rng: Random) -> str:
    """Replace one digit of the text. The first digit of a number never becomes 0."""
    places = [match.start() for match in re.finditer(r"\d", text)]
    at = places[rng.randrange(len(places))]
    least = 1 if at == 0 or not text[at - 1].isdigit() else 0
    return replaced(text, at, at + 1, str(rng.choice([n for n in range(least, 10) if str(n) != text[at]])))


def price_digit(page: Content, _: Content, rng: Random) -> Content | None:
    return with_facts(page, price=int(digit_changed(str(page.facts.price), rng)))


def price_transposed(page: Content, _: Content, rng: Random) -> Content | None:
    """Swap two digits: 19.99 becomes 99.19."""
    digits = list(str(page.facts.price))
    pairs = [(i, j) for i in range(len(digits)) for j in range(i) if digits[i] != digits[j] and digits[i] != "0"]
    if not pairs:
        return None
    i, j = rng.choice(pairs)
    digits[i], digits[j] = digits[j], digits[i]
    return with_facts(page, price=int("".join(digits)))


def date_digit(page: Content, _: Content, rng: Random) -> Content | None:
    """Change one digit of the day: 12 becomes 13 or 22."""
    day = page.facts.opens.day
    near = [n for n in range(1, 29) if len(str(n)) == len(str(day)) and _differ(str(n), str(day)) == 1]
    return with_facts(page, opens=date(page.facts.opens.year, page.facts.opens.month, rng.choice(near)))


def _differ(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def date_moved(page: Content, _: Content, rng: Random) -> Content | None:
    return with_facts(page, opens=page.facts.opens + timedelta(days=rng.randrange(29, 90)))


def sold_out(page: Content, _: Content, __: Random) -> Content | None:
    return with_facts(page, in_stock=not page.facts.in_stock)


def table_number(page: Content, _: Content, rng: Random) -> Content | None:
    rows = list(page.facts.rows)
    at = rng.randrange(len(rows))
    rows[at] = (rows[at][0], int(digit_changed(str(rows[at][1]), rng)))
    return with_facts(page, rows=tuple(rows))


def row_added(page: Content, other: Content, rng: Random) -> Content | None:
    new = (*rng.choice(other.facts.rows),)
    at = rng.randrange(len(page.facts.rows) + 1)
    return with_facts(page, rows=(*page.facts.rows[:at], (new[0], new[1] + 1), *page.facts.rows[at:]))


def row_removed(page: Content, _: Content, rng: Random) -> Content | None:
    at = rng.randrange(len(page.facts.rows))
    return with_facts(page, rows=(*page.facts.rows[:at], *page.facts.rows[at + 1 :]))


def rows_swapped(page: Content, _: Content, rng: Random) -> Content | None:
    rows = list(page.facts.rows)
    i, j = rng.sample(range(len(rows)), 2)
    rows[i], rows[j] = rows[j], rows[i]
    return with_facts(page, rows=tuple(rows))


def author(page: Content, other: Content, _: Random) -> Content | None:
    """Change the author, in the same line as the date and the number of readers."""
    return with_facts(page, author=other.facts.author) if other.facts.author != page.facts.author else None


def picture(page: Content, _: Content, rng: Random) -> Content | None:
    """Change the file name of the picture, not its query, which often only bypasses caches."""
    return with_facts(page, picture=digit_changed(page.facts.picture, rng))


def caption(page: Content, other: Content, _: Random) -> Content | None:
    """Change the alternative text of the picture."""
    return with_facts(page, caption=other.facts.caption) if other.facts.caption != page.facts.caption else None


def title(page: Content, other: Content, _: Random) -> Content | None:
    """Change only the title."""
    return replace(page, title=f"{page.title}: {other.title.split()[-1]}")


def description(page: Content, other: Content, _: Random) -> Content | None:
    """Change the meta description."""
    return replace(page, description=f"{page.description} {other.title.split()[0]}")


def in_text(page: Content, places: list[tuple[int, int]], rng: Random, new: Callable[[str], str]) -> Content | None:
    if not places:
        return None
    start, end = places[rng.randrange(len(places))]
    return replace(page, html=replaced(page.html, start, end, new(page.html[start:end])))


def number_in_text(page: Content, _: Content, rng: Random) -> Content | None:
    blocks = of_tags(page.html, "p", "li", "td")
    places = [place for block in blocks for place in found_in(page.html, block, r"(?<![\w&#])\d+(?!\w)")]
    return in_text(page, places, rng, lambda number: digit_changed(number, rng))


def one_word(page: Content, other: Content, rng: Random) -> Content | None:
    """Replace one word of a long page."""
    if len(_text(page.html).split()) < LONG_PAGE_WORDS:
        return None
    return in_text(page, _words(page, "p"), rng, lambda word: _another(word, other, rng))


def word_removed(page: Content, _: Content, rng: Random) -> Content | None:
    return in_text(page, _words(page, "p", "li"), rng, lambda _: "")


def word_doubled(page: Content, _: Content, rng: Random) -> Content | None:
    """Repeat a word that the page already contains."""
    return in_text(page, _words(page, "p"), rng, lambda word: f"{word} not {word}")


def heading(page: Content, other: Content, rng: Random) -> Content | None:
    places = [span for h in of_tags(page.html, "h1", "h2", "h3", "h4") for span in found_in(page.html, h, r"\w{3,}")]
    return in_text(page, places, rng, lambda word: _another(word, other, rng))


def sign_in_code(page: Content, _: Content, rng: Random) -> Content | None:
    """Change one operator or punctuation mark in a code example."""
    places = [span for pre in of_tags(page.html, "pre") for span in found_in(page.html, pre, r"[-+*/=.,:;]")]
    return in_text(page, places, rng, lambda sign: rng.choice([each for each in "-+*/=.,:;" if each != sign]))


def _words(page: Content, *tags: str) -> list[tuple[int, int]]:
    return [place for block in of_tags(page.html, *tags) for place in words_in(page.html, block)]


def _another(word: str, other: Content, rng: Random) -> str:
    new = [match[0] for match in re.finditer(r"\b[a-z]{4,}\b", _text(other.html)) if match[0] != word.lower()]
    return rng.choice(new)


def _text(html: str) -> str:
    return re.sub("<[^>]*>", " ", html)


def link_target(page: Content, other: Content, rng: Random) -> Content | None:
    """Change the target of a link but not its text."""
    found = list(re.finditer(r'<a\b[^<>]*?\bhref="([^"#?:]+\.html)', page.html))
    if not found:
        return None
    start, end = found[rng.randrange(len(found))].span(1)
    name = other.title.split()[0].lower().strip(".,:<>&\"'")
    return replace(page, html=replaced(page.html, start, end, f"{name}-{rng.randrange(100)}.html"))


def paragraph_removed(page: Content, _: Content, rng: Random) -> Content | None:
    gone = rng.choice(_paragraphs(page))
    return replace(page, html=replaced(page.html, gone.start, gone.end, ""))


def paragraph_added(page: Content, other: Content, rng: Random) -> Content | None:
    new, place = rng.choice(_paragraphs(other)), rng.choice(_paragraphs(page))
    return replace(
        page, html=replaced(page.html, place.end, place.end, f"<p>{other.html[new.inner : new.inner_end]}</p>")
    )


def paragraph_rewritten(page: Content, other: Content, rng: Random) -> Content | None:
    """Rewrite a paragraph of the body; nothing in the head changes."""
    new, old = rng.choice(_paragraphs(other)), rng.choice(_paragraphs(page))
    return replace(page, html=replaced(page.html, old.inner, old.inner_end, other.html[new.inner : new.inner_end]))


def _paragraphs(page: Content) -> list[Element]:
    return of_tags(page.html, "p", chars=40)


def item_removed(page: Content, _: Content, rng: Random) -> Content | None:
    found = of_tags(page.html, "li", "dd", chars=20)
    if not found:
        return None
    gone = rng.choice(found)
    return replace(page, html=replaced(page.html, gone.start, gone.end, ""))


def section_moved(page: Content, _: Content, rng: Random) -> Content | None:
    """Swap two sections of the page."""
    tags = ("div", "section", "p", "ul", "dl", "table", "blockquote", "pre")
    large = [each for each in elements(page.html) if each.tag in tags and each.end - each.start >= SECTION_CHARS]
    pairs = [(a, b) for a in large for b in large if a.parent == b.parent and a.tag == b.tag and a.end <= b.start]
    pairs = [(a, b) for a, b in pairs if _text(page.html[a.start : a.end]) != _text(page.html[b.start : b.end])]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    html = page.html
    parts = (html[: a.start], html[b.start : b.end], html[a.end : b.start], html[a.start : a.end], html[b.end :])
    return replace(page, html="".join(parts))


EDITS: Mapping[str, Edit] = {
    "price-digit": price_digit,
    "price-transposed": price_transposed,
    "price-daily": price_digit,
    "price-beside-counter": price_digit,
    "date-digit": date_digit,
    "date-moved": date_moved,
    "sold-out": sold_out,
    "table-number": table_number,
    "row-added": row_added,
    "row-removed": row_removed,
    "rows-swapped": rows_swapped,
    "author": author,
    "picture": picture,
    "caption": caption,
    "title": title,
    "description": description,
    "number-in-text": number_in_text,
    "one-word": one_word,
    "word-removed": word_removed,
    "word-doubled": word_doubled,
    "heading": heading,
    "sign-in-code": sign_in_code,
    "link-target": link_target,
    "paragraph-removed": paragraph_removed,
    "paragraph-added": paragraph_added,
    "paragraph-rewritten": paragraph_rewritten,
    "item-removed": item_removed,
    "section-moved": section_moved,
}
DIGITS = frozenset(
    {"price-digit", "price-transposed", "price-beside-counter", "date-digit", "table-number", "number-in-text"}
)
