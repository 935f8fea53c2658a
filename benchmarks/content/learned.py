"""The boilerplate of a domain as sets of hashes, learned from some of its pages.

A line is shared if most pages have the same text in a box of the same place. A place is a slot of the template if most
pages have it and nearly all of its boxes consist of links and shared lines: breadcrumbs, links to the next page,
tables of contents. The text of a slot differs from page to page.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from crawler.core.page.fingerprint import hash_text
from crawler.core.page.scan import BOILERPLATE, PageScan

MIN_PAGES = 2  # of a shared line
MIN_SHARE = 0.5  # of the pages have a shared line or a slot
MIN_SLOT_SHARE = 0.8  # of the pages with a slot have only links and shared lines in it
MIN_LINK_SHARE = 0.8  # of the characters in a box of links
MIN_LINK_LINES = 0.6  # of the lines in a box of links with little other text
MAX_OTHER_CHARS = 200  # in such a box
MAX_HEADINGS = 2  # shared lines that are alone in a box
MIN_OWN_WORDS = 20  # of a page outside of boilerplate; with fewer, its boilerplate elements are ignored
MAX_LEARNED = 2048


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known about a domain. lines: hashes of shared lines with their places.  slots: hashes of places."""

    lines: frozenset[int] = frozenset()
    slots: frozenset[int] = frozenset()


NOTHING_LEARNED = Learned()


def learn(scans: Sequence[PageScan]) -> Learned:
    """Return the boilerplate that most of the pages have."""
    counts: Counter[int] = Counter()
    for scan in scans:
        counts.update(set(hash_lines(scan)))
    least = max(MIN_PAGES, MIN_SHARE * len(scans))
    lines = frozenset(each for each, count in counts.most_common(MAX_LEARNED) if count >= least)
    pages: Counter[int] = Counter()
    of_links: Counter[int] = Counter()
    for scan in scans:
        is_slot: dict[int, bool] = {}
        for place, has_links in zip(hash_places(scan), find_link_boxes(scan, lines), strict=True):
            if has_links is not None:
                is_slot[place] = is_slot.get(place, True) and has_links
        pages.update(is_slot.keys())
        of_links.update(place for place, has_links in is_slot.items() if has_links)
    slots = (each for each, count in pages.most_common(MAX_LEARNED) if count >= least)
    return Learned(lines, frozenset(each for each in slots if of_links[each] >= MIN_SLOT_SHARE * pages[each]))


def hash_places(scan: PageScan) -> Sequence[int]:
    """Return a hash of the place of each box: its tag and classes, and those around it up to one with a class.

    Names with digits are left out, because they count or name a build.
    """
    hashes: dict[str, int] = {}
    outer, places = [""], [""]
    for parent, tag, classes in zip(scan.box_parents[1:], scan.box_tags[1:], scan.box_classes[1:], strict=True):
        names = [name for name in classes.split() if not any(map(str.isdigit, name))]
        own = f"{tag}.{' '.join(names)}"
        places.append(f"{outer[parent]}>{own}")
        outer.append(own if names else places[-1])
    for place in places:
        if place not in hashes:
            hashes[place] = hash_text(place)
    return [hashes[place] for place in places]


def hash_lines(scan: PageScan) -> Sequence[int]:
    """Return a hash of the text and the place of each line."""
    places = hash_places(scan)
    return [hash_text(text) ^ places[box] for text, box in zip(scan.texts, scan.line_boxes, strict=True)]


def find_link_boxes(scan: PageScan, shared: frozenset[int]) -> Sequence[bool | None]:
    """Return for each box whether it has only links and shared lines.

    None for boxes without text, and for those of at most MAX_HEADINGS shared lines: they may be headings.
    """
    # Of each box: its lines, those that are shared or links, the shared ones, its characters, and the other ones.
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for line, box, chars, links in zip(
        hash_lines(scan), scan.line_boxes, scan.line_chars, scan.line_link_chars, strict=True
    ):
        if chars:
            is_shared = line in shared
            found = sums[box]
            found[0] += 1
            found[1] += is_shared or 2 * links >= chars
            found[2] += is_shared
            found[3] += chars
            found[4] += 0 if is_shared else chars - links
    for box in range(len(scan.box_tags) - 1, 0, -1):
        if box in sums:
            outer = sums[scan.box_parents[box]]
            outer[:] = map(sum, zip(outer, sums[box], strict=True))
    return [None, *(_has_links(*sums[box]) if box in sums else None for box in range(1, len(scan.box_tags)))]


def _has_links(lines: int, link_lines: int, shared: int, chars: int, others: int) -> bool | None:
    if lines == shared <= MAX_HEADINGS:
        return None
    is_short = link_lines >= MIN_LINK_LINES * lines and others <= MAX_OTHER_CHARS
    return is_short or others <= (1 - MIN_LINK_SHARE) * chars


def find_boilerplate(scan: PageScan, known: Learned) -> tuple[list[bool], list[bool]]:
    """Return for each line whether it is shared, and whether it is in a slot."""
    is_shared = [line in known.lines for line in hash_lines(scan)]
    in_slot = [False] * len(scan.box_tags)
    boxes = zip(scan.box_parents, hash_places(scan), find_link_boxes(scan, known.lines), strict=True)
    for box, (parent, place, has_links) in enumerate(boxes):
        in_slot[box] = in_slot[parent] or bool(has_links and place in known.slots)
    return is_shared, [in_slot[box] for box in scan.line_boxes]


def select_own(scan: PageScan, known: Learned) -> list[int]:
    """Return the lines of a page that are not boilerplate, as the domain's other pages show it.

    Shared lines between others belong to the content: they are headings such as "Description".
    """
    is_shared, is_in_slot = find_boilerplate(scan, known)
    is_marked = [bool(scan.box_flags[box] & BOILERPLATE) for box in scan.line_boxes]
    dropped = [shared or slot for shared, slot in zip(is_shared, is_in_slot, strict=True)]
    words = (text.count(" ") + 1 for text, *out in zip(scan.texts, dropped, is_marked, strict=True) if not any(out))
    if sum(words) >= MIN_OWN_WORDS:
        is_in_slot = [slot or marked for slot, marked in zip(is_in_slot, is_marked, strict=True)]
    lines = [line for line, slot in enumerate(is_in_slot) if not slot]
    own = [line for line in lines if not is_shared[line] and 2 * scan.line_link_chars[line] < scan.line_chars[line]]
    return [line for line in lines if own and own[0] <= line <= own[-1]]
