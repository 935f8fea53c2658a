"""Secrets that stand in files, as containers and systemd hand them over: NAME_FILE names the file of variable NAME."""

import os
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from crawler.errors import BadInput

SUFFIX = "_FILE"
MAX_BYTES = 65_536


def read_variable(name: str) -> str | None:
    """The value of a variable, or else what the file says that NAME_FILE names, without the line's end.

    The variable goes before: a process gives it to those that it starts. Raises BadInput for a file that cannot be
    read.
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
    """A database URL with a password in it; one that it has stays."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" in user:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))
