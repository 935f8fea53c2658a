"""The headers of an answer that are kept with a version: within bounds, and nothing that is secret."""

from collections.abc import Iterable

MAX_BYTES = 4096  # of all; ordinary answers have a quarter of that
MAX_VALUE_CHARS = 1024  # some policies are longer: they are cut, with an ellipsis
ELLIPSIS = "..."
# What lets somebody in, by name or by what the name says (RFC 6265; RFC 9110, 11).
SECRET_HEADERS = frozenset(
    {"set-cookie", "set-cookie2", "www-authenticate", "proxy-authenticate", "authentication-info"}
)
SECRET_WORDS = ("cookie", "token", "secret", "session", "password", "auth", "api-key", "apikey", "csrf", "xsrf")
# Of the connection, not of the page (RFC 9110, 7.6.1); what is kept elsewhere; and what differs with every answer.
UNSTORED_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"content-type", "etag", "last-modified", "date", "age"}
)


def select_stored_headers(headers: Iterable[tuple[str, str]]) -> str:
    """The headers that are kept, a line each, as `Name: value`, in the order of the answer.

    headers: of one line each.  Whole headers are left out where all together would be longer than MOST_BYTES.
    """
    lines: list[str] = []
    bytes_left = MAX_BYTES
    for name, value in headers:
        lower = name.lower()
        if lower in UNSTORED_HEADERS or lower in SECRET_HEADERS or any(word in lower for word in SECRET_WORDS):
            continue
        line = f"{name}: {value if len(value) <= MAX_VALUE_CHARS else value[:MAX_VALUE_CHARS] + ELLIPSIS}"
        bytes_left -= len(line.encode("utf-8", "replace")) + 1
        if bytes_left < 0:
            break
        lines.append(line)
    return "\n".join(lines)
