"""recrawl export: a domain's pages to a file, a folder or stdout."""

import sys
from datetime import UTC, datetime
from shlex import quote

from crawler.app.exports import Database, Exported, ExportRequest, Format, What, export_pages
from crawler.cli.cursors import told_if_useless
from crawler.cli.exits import DONE
from crawler.cli.output import out, print_json, remark
from crawler.cli.progress import PagesWritten
from crawler.cli.session import Interrupts, with_database
from crawler.errors import BadInput
from crawler.format.values import format_count


def export(request: ExportRequest, *, as_json: bool) -> int:
    if request.format.is_binary and request.to is None and out().is_terminal:
        raise BadInput(f"{request.format} is nothing for a terminal: --to FILE")
    if as_json and request.to is None:
        raise BadInput("--json tells what was written, so that --to has to say where")

    async def work(db: Database, _: Interrupts) -> Exported:
        with PagesWritten() as progress:
            return await export_pages(
                db, request, stream=sys.stdout.buffer, at=datetime.now(UTC), on_progress=progress.advance
            )

    with told_if_useless(as_json=as_json):
        done = with_database(work)
    if as_json:
        print_json({"domain": request.domain, "pages": done.pages, "next": done.cursor})
    else:
        noun = "version" if request.versions else "page"
        remark(f"{format_count(done.pages, noun)}; what changes from now on: {_next(request, done)}")
    return DONE


def _next(request: ExportRequest, done: Exported) -> str:
    given = [f"--format {request.form}"] if request.form != Format.JSONL else []
    given += [f"--{request.what}"] if request.what is not What.PAGES else []
    given += [f"--to {quote(str(request.to))}"] if request.to is not None and request.format.is_folder else []
    return " ".join(["recrawl export", request.domain, *given, f"--since {done.cursor}"])
