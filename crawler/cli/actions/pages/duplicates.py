"""recrawl duplicates: which pages say nearly the same."""

from collections.abc import Sequence

from crawler.app.registration import domain_named, url_of
from crawler.cli.actions.explain.why import scope_now
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, say, show
from crawler.cli.session import Interrupts, with_database
from crawler.core.change import LEAST_TEXT_BYTES
from crawler.core.http import Url, key_of, path_and_query
from crawler.format.values import format_count
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import Alike, Near

SHOWN = 5  # pages of a group, for people
TOLD = 1000  # and for programs


def duplicates(text: str | None, *, bits: int, most: int, as_json: bool) -> int:
    if text is not None and path_and_query(url_of(text)) != "/":
        return _of_page(text, bits=bits, most=most, as_json=as_json)
    return _of_domains(text, bits=bits, most=most, as_json=as_json)


def _of_domains(text: str | None, *, bits: int, most: int, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> list[Alike]:
        if text is not None:
            wanted = [await domain_named(db, text)]
        else:
            wanted = [listed.domain for listed in await domains.every(db)]
        found: list[Alike] = []
        for domain in wanted:
            await report.fill(db, domain)
            found += await report.alike(db, domain, bits=bits, most=most + 1, members=TOLD if as_json else SHOWN)
        return sorted(found, key=lambda group: -group.pages)

    found = with_database(work)
    if as_json:
        print_json({"bits": bits, "groups": found[:most], "more": len(found) > most})
    elif not found:
        say("No two pages say nearly the same")
    else:
        show(
            ["pages", "bits", "looks", "url"],
            [row for group in found[:most] for row in _rows(group)],
            right=["pages", "bits"],
        )
        if len(found) > most:
            say("There are more groups: --most")
    return DONE


def _shown_looks(page: Near) -> str:
    return "shared" if page.shares_schedule else ""


def _rows(group: Alike) -> list[tuple[str, ...]]:
    """A group: its size before its first page, and how far the others are from it."""
    first, *others = group.members
    rows: list[tuple[str, ...]] = [
        (str(group.pages), "", _shown_looks(first), first.url),
        *(("", str(other.bits), _shown_looks(other), other.url) for other in others),
    ]
    left = group.pages - len(group.members)
    return [*rows, ("", "", "", f"and {format_count(left, 'more page')}")] if left > 0 else rows


def _of_page(text: str, *, bits: int, most: int, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[Url, list[Near] | None]:
        domain = await domain_named(db, text)
        url = scope_now(domain).home(url_of(text))
        await report.fill(db, domain)
        return url, await report.near(db, domain, key_of(url), bits=bits, most=most + 1)

    url, found = with_database(work)
    if as_json:
        pages = None if found is None else found[:most]
        print_json({"url": url, "bits": bits, "pages": pages, "more": len(found or ()) > most})
    elif found is None:
        say(f"{url} is not compared: it is not there, or has less than {LEAST_TEXT_BYTES} bytes of main text")
    else:
        _show_near(url, found, most=most)
    return PROBLEM if found is None else DONE


def _show_near(url: Url, found: Sequence[Near], *, most: int) -> None:
    if not found:
        say(f"No page says nearly the same as {url}")
        return
    rows = [(str(page.bits), _shown_looks(page), page.url) for page in found[:most]]
    show(["bits", "looks", "url"], rows, right=["bits"])
    if len(found) > most:
        say("There are more: --most")
