"""Make a history of a site for `labs replay`: events.json and blobs/ in FOLDER.

releases: a documentation that is built anew with each release.  news: articles that appear and are corrected, lists of
them, a feed, and pages that stay as they are.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from labs.histories.news import BOOKWORM, write_news
from labs.histories.releases import write_releases

EXAMPLES = """examples:
  python -m labs history releases manual --of sqlalchemy
  python -m labs history news news --start 2022-07-01
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; 2 where the folder is in use or there is nothing to make a history of."""
    given = options().parse_args(arguments)
    if given.folder.exists() and any(given.folder.iterdir()):
        print(f"{given.folder} is not empty. Name a folder that does not exist yet.", file=sys.stderr)
        return 2
    if given.kind == "releases":
        print(write_releases(given.folder, of=given.of, days=given.days))
        return 0
    made = write_news(given.folder, changelogs=given.changelogs, start=given.start, days=given.days)
    if made is None:
        missing = f"{given.changelogs} has no Debian changelogs of the half year before {given.start:%Y-%m-%d}"
        print(f"{missing}. Use --changelogs and --start.", file=sys.stderr)
        return 2
    print(made)
    return 0


def options() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser(
        prog="labs history",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=["releases", "news"])
    parser.add_argument("folder", type=Path, help="which is made")
    parser.add_argument("--days", type=int, default=180)
    parser.add_argument("--of", choices=["pytest", "sqlalchemy"], default="pytest", help="releases: of which project")
    parser.add_argument("--changelogs", type=Path, default=Path("/usr/share/doc"), help="news: PACKAGE/changelog*.gz")
    parser.add_argument("--start", type=_date, default=BOOKWORM, help="news: the first day, as 2022-07-01")
    return parser


def _date(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
