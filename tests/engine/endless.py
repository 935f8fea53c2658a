"""A site without end: page n links to pages 3n+1, 3n+2 and 3n+3, and to its ancestors."""

from contextlib import AbstractAsyncContextManager

from tests.engine.crawls import answered, answering

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "nobody",
    "visits",
    "and",
    "the",
    "evening",
    "comes",
    "slowly",
]


def name_of(n: int) -> str:
    """Return a unique word for each page, without digits: a page without new text would be deferred."""
    return "".join("abcdefghik"[int(digit)] for digit in str(n))


def page_of(n: int) -> bytes:
    links = "".join(f'<a href="/{to}">{to}</a> ' for to in (3 * n + 1, 3 * n + 2, 3 * n + 3, n // 3, n // 9))
    words = (WORDS[(n * 7 + at * (n % 11 + 1)) % len(WORDS)] for at in range(300))
    text = " ".join(word if at % 3 else name_of(n) for at, word in enumerate(words))
    body = f"<!doctype html><title>Page {n}</title><main><h1>Page {n}</h1><p>{text}</p>{links}</main>".encode()
    return answered(200, body)


def respond(target: str) -> bytes:
    path = target.strip("/")
    return page_of(int(path or "0")) if path.isdigit() or not path else answered(404, b"")


def endless_site() -> AbstractAsyncContextManager[str]:
    """Run the site on a loopback port until the block ends."""
    return answering(respond)
