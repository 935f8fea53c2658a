"""A site of up to ten million pages that nginx makes up by its configuration alone: /p312 links to /p3120 to /p3129.

A page's number is its path in a tree of ten branches. Maps make a word of two digits of the number, another one for
each place in the text, so that no two pages say the same; nothing is stored, and no program of ours computes anything.
"""

from random import Random

from benchmarks.harness.nginx import Site

MOST_DEPTH = 7  # levels below the root
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu", "ban", "der", "fil", "gom", "hux", "jer")
WORDS = 24  # maps, each of which gives a page one of 111 words
LINES = 6  # of text, each with all of the page's words in another order
PAIRS = ["", *map(str, range(10)), *(f"{n:02}" for n in range(100))]


def virtual_site(*, depth: int) -> Site:
    """A tree of so many levels below the root, 1 to MOST_DEPTH: 1 + 10 + 100 pages and so on."""
    assert 1 <= depth <= MOST_DEPTH
    names = [f"(?<d{n}>[0-9])" for n in range(depth)]
    optional = "".join(f"{name}?" for name in names[:-1])
    locations = (
        location(f"^/(?:p(?<number>{optional}))?$", links=True),
        location(f"^/p(?<number>{''.join(names)})$", links=False),
    )
    maps = "\n".join(map_of(n, depth) for n in range(WORDS))
    return Site(server=f"default_type text/html; {' '.join(locations)} location / {{ return 404; }}", http=maps)


def pages_of(depth: int) -> int:
    """How many pages such a tree has."""
    return int("1" * (depth + 1))


def location(pattern: str, *, links: bool) -> str:
    chance = Random(0)
    lines = "".join(f"<p>{' '.join(f'$w{n}' for n in chance.sample(range(WORDS), WORDS))}.</p>" for _ in range(LINES))
    anchors = "".join(f'<a href="/p${{number}}{n}">on</a> ' for n in range(10)) if links else ""
    body = f"<!DOCTYPE html><title>$w0 $w1</title><main><h1>$w2 $w3</h1>{lines}{anchors}</main>"
    return f"location ~ '{pattern}' {{ return 200 '{body}'; }}"


def map_of(n: int, depth: int) -> str:
    """Two of the digits, in one order or the other, to a word."""
    first, second = n % depth, (n // depth + n + 1) % depth
    chance = Random(n)
    entries = " ".join(f'"{pair}" {"".join(chance.choices(SYLLABLES, k=3))};' for pair in PAIRS)
    return f'map "$d{first}$d{second}" $w{n} {{ {entries} }}'
