"""A site of up to ten million pages that nginx generates from its configuration: /p312 links to /p3120 to /p3129.

A page's number is its path in a tree with ten branches per level. Maps turn two digits of the number into a word, with
a different map for each position in the text, which makes all pages different. Nothing is stored, and nginx does all
the work.
"""

from random import Random

from benchmarks.harness.nginx import Site

MAX_DEPTH = 7  # levels below the root
SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "se", "ti", "vo", "zu", "ban", "der", "fil", "gom", "hux", "jer")
WORDS = 24  # maps, each of which gives a page one of 111 words
LINES = 6  # lines of text, each with all words of the page in another order
PAIRS = ["", *map(str, range(10)), *(f"{n:02}" for n in range(100))]


def virtual_site(*, depth: int) -> Site:
    """Return a tree with `depth` levels below the root, 1 to MAX_DEPTH: 1 + 10 + 100 + ... pages."""
    assert 1 <= depth <= MAX_DEPTH
    names = [f"(?<d{n}>[0-9])" for n in range(depth)]
    optional = "".join(f"{name}?" for name in names[:-1])
    locations = (
        location(f"^/(?:p(?<number>{optional}))?$", links=True),
        location(f"^/p(?<number>{''.join(names)})$", links=False),
    )
    maps = "\n".join(map_of(n, depth) for n in range(WORDS))
    return Site(server=f"default_type text/html; {' '.join(locations)} location / {{ return 404; }}", http=maps)


def pages_of(depth: int) -> int:
    """Return the number of pages of such a tree."""
    return int("1" * (depth + 1))


def location(pattern: str, *, links: bool) -> str:
    chance = Random(0)
    lines = "".join(f"<p>{' '.join(f'$w{n}' for n in chance.sample(range(WORDS), WORDS))}.</p>" for _ in range(LINES))
    anchors = "".join(f'<a href="/p${{number}}{n}">on</a> ' for n in range(10)) if links else ""
    body = f"<!DOCTYPE html><title>$w0 $w1</title><main><h1>$w2 $w3</h1>{lines}{anchors}</main>"
    return f"location ~ '{pattern}' {{ return 200 '{body}'; }}"


def map_of(n: int, depth: int) -> str:
    """Return a map from two of the digits, in either order, to a word."""
    first, second = n % depth, (n // depth + n + 1) % depth
    chance = Random(n)
    entries = " ".join(f'"{pair}" {"".join(chance.choices(SYLLABLES, k=3))};' for pair in PAIRS)
    return f'map "$d{first}$d{second}" $w{n} {{ {entries} }}'
