"""Secrets in files, as containers and systemd pass them: NAME_FILE names a file with the value of variable NAME."""

import os
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from crawler.errors import BadInput

SUFFIX = "_FILE"
MAX_BYTES = 65_536


def read_variable(name: str) -> str | None:
    """Return the value of a variable, or else the content of the file that NAME_FILE names, without trailing newlines.

    The variable takes precedence, because processes pass it to their child processes. Only the first MAX_BYTES of the
    file are read. Raise BadInput if it cannot be read or is not text.
    """
    value, file = os.environ.get(name), os.environ.get(f"{name}{SUFFIX}")
    if value is not None or not file:
        return value
    try:
        with Path(file).open("rb") as opened:
            return opened.read(MAX_BYTES).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadInput(f"{name}{SUFFIX}: {file} cannot be read: {reason}") from error


def add_password(url: str, password: str) -> str:
    """Return a database URL with the password inserted, unless it contains one already."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" in user:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))
