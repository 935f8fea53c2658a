"""The response headers that are stored with a version: limited in size, and without secrets."""

from collections.abc import Iterable
from functools import lru_cache

MAX_BYTES = 4096  # of all headers; ordinary responses have a quarter of that
MAX_VALUE_CHARS = 1024  # longer values, such as those of some Content-Security-Policy headers, are truncated
ELLIPSIS = "..."
# Words in the names of headers with credentials, such as Set-Cookie or WWW-Authenticate (RFC 6265; RFC 9110, 11).
SECRET_WORDS = ("cookie", "token", "secret", "session", "password", "auth", "api-key", "apikey", "csrf", "xsrf")
# Headers of the connection (RFC 9110, 7.6.1), headers stored elsewhere, and headers that differ in each response.
UNSTORED_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"content-type", "etag", "last-modified", "date", "age"}
)


def select_stored_headers(headers: Iterable[tuple[str, str]]) -> str:
    """Return the headers to store, one per line as `Name: value`, in the order of the response.

    headers: each with a one-line value. Headers from the first one that would exceed MAX_BYTES are omitted.
    """
    lines: list[str] = []
    bytes_left = MAX_BYTES
    for name, value in headers:
        if not _is_stored(name):
            continue
        line = f"{name}: {value if len(value) <= MAX_VALUE_CHARS else value[:MAX_VALUE_CHARS] + ELLIPSIS}"
        bytes_left -= (len(line) if line.isascii() else len(line.encode("utf-8", "replace"))) + 1
        if bytes_left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


@lru_cache(maxsize=1024)  # a site sends the same names with each response
def _is_stored(name: str) -> bool:
    lower = name.lower()
    return lower not in UNSTORED_HEADERS and not any(word in lower for word in SECRET_WORDS)
