"""Distance of two versions in the page's own text, without boilerplate and clocks."""

from typing import NamedTuple

from crawler.core.change.difference import compute_difference, measure_distance, select_significant
from crawler.core.page.fingerprint import compute_fingerprint, count_distance_bits
from tests.core.pages import DAY, NOON, Domain, blocks, texts

SENTENCES = "".join(
    f"<p>Of the {word} there is much to be told, and some of it is told here at length.</p>"
    for word in ("river", "mountain", "harbour", "bridge", "market", "tower", "garden", "library")
)
MENU = "".join(f"<li><a href=/{name}>{name} and all that belongs to it</a>" for name in ("one", "two", "three", "four"))


class Distance(NamedTuple):
    bits: int | None
    blocks: float


def between(domain: Domain, before: str, after: str) -> Distance:
    old, new = blocks(before), blocks(after)
    found = compute_difference(old, new, domain.mask.volatile)
    own = select_significant(found, domain.mask, then=NOON - DAY, now=NOON)
    return Distance(*measure_distance(found, own, domain.mask))


def test_distance_grows_with_the_replaced_share_of_a_text() -> None:
    words = [f"<p>Entirely other words about {n}, which nobody has read here before this day.</p>" for n in "abcdefgh"]
    paragraphs = SENTENCES.split("</p>")[:-1]
    bits = []
    for many in (1, 3, 8):
        found = between(Domain(), SENTENCES, "".join([*words[:many], *(f"{p}</p>" for p in paragraphs[many:])]))
        assert found.bits is not None
        bits.append(found.bits)

    assert 0 < bits[0] < bits[1] < bits[2]


def test_one_digit_of_a_long_page_has_small_distance_and_one_changed_block() -> None:
    long = SENTENCES * 12
    found = between(Domain(), f"{long}<p>Price 19.99", f"{long}<p>Price 19.98")

    assert found.bits is not None
    assert found.bits <= 2
    assert found.blocks == 1 / (len(texts(blocks(long))) + 1)


def test_boilerplate_does_not_add_distance() -> None:
    """The whole site changed a menu, and the page changed a sentence."""
    domain = Domain()
    for name in ("a", "b", "c", "d", "e"):
        domain.first(f"<ul>{MENU}</ul><p>Page {name} says {name}.</p>{SENTENCES}", path=name)
    for name in ("b", "c", "d", "e"):
        told = f"<p>Page {name} says {name}.</p>{SENTENCES}"
        domain.visit(f"<ul>{MENU}</ul>{told}", f"<ul>{MENU}<li><a href=/5>five</a></ul>{told}", path=name)
    then = f"<ul>{MENU}</ul><p>Page a says what it said.</p>{SENTENCES}"
    now = f"<ul>{MENU}<li><a href=/5>five</a></ul><p>Page a says something else today.</p>{SENTENCES}"

    with_menu = between(domain, then, now)
    alone = between(domain, then, now.replace("<li><a href=/5>five</a>", ""))

    assert with_menu.bits == alone.bits
    assert with_menu.blocks == alone.blocks > 0


def test_versions_that_differ_only_in_noise_have_no_distance() -> None:
    domain = Domain()
    page = SENTENCES + "<p>Seen by {} people"
    domain.visit(page.format(12), page.format(15), page.format(17), page.format(19))
    found = between(domain, page.format(12), page.format(4711))

    assert found == Distance(0, 0.0)


def test_page_without_text_has_no_bits_and_first_text_has_half_of_them() -> None:
    link = "<a href=/{}><img src={}.png></a>"

    assert between(Domain(), link.format(1, 1), link.format(2, 2)).bits is None
    assert between(Domain(), link.format(1, 1), link.format(1, 1) + "<p>words").bits == 32


def test_distance_equals_that_of_the_simhash_package() -> None:
    old, new = SENTENCES, SENTENCES.replace("river", "lake")
    one, other = (
        compute_fingerprint("\n".join(texts(blocks(page))[1:] + texts(blocks(page))[:1])) for page in (old, new)
    )
    assert one is not None
    assert other is not None

    # The unchanged blocks come first, then those that differ.
    assert abs((between(Domain(), old, new).bits or 0) - count_distance_bits(one, other)) <= 2


def test_restyled_page_has_no_distance() -> None:
    styled = SENTENCES.replace("<p>", "<p class=new>")

    assert between(Domain(), SENTENCES, styled) == Distance(0, 0.0)
