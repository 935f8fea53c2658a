"""recrawl report: its options and its help."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.options import At, Json

if TYPE_CHECKING:
    from crawler.app.reports import Database
    from crawler.cli.session import Interrupts


def report(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")] = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="DIR", file_okay=False, help="Write it as web pages to a folder.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say how fresh the copy is, how true that is, and what keeping it so costs.

    How true: as far as `recrawl audit` has found out, which the running stack asks for every day. With --html, what
    `recrawl serve` shows is written as files that need no server: the domains, the newest changes, and the pages that
    changed, fail or are to worry about.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
        recrawl report --html report
    """
    from crawler.cli.reports import report_output

    if html is not None:
        return _write(domain, html, at=at, as_json=as_json)
    return report_output.report(domain, days=days, at=at, as_json=as_json)


def _write(text: str | None, folder: Path, *, at: datetime | None, as_json: bool) -> int:
    """Write the pages of one domain, or of all."""
    from crawler.app.registration import find_domains
    from crawler.cli.exits import DONE
    from crawler.cli.output import print_json, say
    from crawler.cli.session import with_database
    from crawler.server import write_pages

    async def work(db: "Database", _: "Interrupts") -> tuple[Path, int]:
        written = await write_pages(db, await find_domains(db, text, at=at), folder, at=at or datetime.now(UTC))
        return written.index, written.files

    index, files = with_database(work)
    if as_json:
        print_json({"index": str(index), "files": files})
    else:
        say(f"{files} pages: {index}")
    return DONE
