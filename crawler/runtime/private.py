"""Folders and files that nobody else on the machine can look into."""

import os
from pathlib import Path

from crawler.errors import StackFailed

OURS = frozenset({"logs", "postgres", "prefect", "report", "run", "search", "tmp"})  # all that stands in RECRAWL_HOME
OTHERS = 0o077  # what group and others may do, in a file's mode


def private_folder(home: Path, name: str) -> Path:
    """HOME/NAME, made where it is not there, and closed to others. name: of `OURS`.

    HOME, too, is closed, unless the user keeps other things in it. Raises StackFailed where it is another user's.
    """
    folder, advice = home / name, "set RECRAWL_HOME to a folder of yours"
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == home.stat().st_uid and {each.name for each in home.iterdir()} <= OURS:
            close(home)
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() != folder.stat().st_uid:
            raise StackFailed(f"{folder} belongs to another user: {advice}")
        close(folder)
    except OSError as error:
        raise StackFailed(
            f"{folder} cannot be used ({error.strerror}): set RECRAWL_HOME to a folder of yours"
        ) from error
    return folder


def close(path: Path) -> None:
    """Take from everybody but the owner what they may do with it."""
    mode = path.stat().st_mode & 0o7777
    if mode & OTHERS:
        path.chmod(mode & ~OTHERS)


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read; who reads meanwhile finds the old one, or the new one whole."""
    making = path.with_name(f".{path.name}.new")
    making.unlink(missing_ok=True)
    making.touch(mode=0o600, exist_ok=False)
    making.write_text(text, encoding="utf-8")
    making.replace(path)
