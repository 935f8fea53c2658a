"""The command `labs history`: create a history of a kind of site."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from crawler.errors import BadInput
from labs.histories.news import write_news
from labs.histories.releases import write_releases


def make_history(
    kind: Literal["releases", "news"], folder: Path, *, days: int, of: str, changelogs: Path, start: datetime
) -> int:
    """Write the history into a new folder and print its size. Raise BadInput."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty. Use the name of a folder that does not exist yet.")
    if kind == "releases":
        print(write_releases(folder, of=of, days=days))
        return 0
    made = write_news(folder, changelogs=changelogs, start=start.replace(tzinfo=UTC), days=days)
    if made is None:
        missing = f"{changelogs} has no Debian changelogs of the half year before {start:%Y-%m-%d}"
        raise BadInput(f"{missing}. Set --changelogs and --start.")
    print(made)
    return 0
