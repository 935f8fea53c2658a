"""recrawl domains add, and the registration of what `recrawl crawl` meets for the first time."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.wishes import Said
from crawler.core.domain import Domain, Wishes
from crawler.core.page_rules import Rule
from crawler.errors import BadInput
from crawler.register import Found, Roots, charge, look_up, register, unasked, url_of
from crawler.settings import settings
from crawler.store import claim, domains
from crawler.store.database import Database
from crawler.web import Http

AT_ONCE = 16  # roots asked at a time: each is another server


@dataclass(frozen=True, slots=True)
class Added:
    """What came of one line: the domain, or why there is none."""

    text: str
    domain: Domain | None
    warning: str = ""
    error: str = ""


def add(
    texts: Sequence[str], *, source: str | None, said: Said, offline: bool, at: datetime | None, as_json: bool
) -> int:
    many = source is not None
    wanted = [*texts, *(_lines(source) if source is not None else [])]
    if not wanted:
        raise BadInput("nothing to register: name a URL, or a file with --from")

    async def work(db: Database, _: Interrupts) -> list[Added]:
        instant = at or datetime.now(UTC)
        wishes = wishes_of(said)
        async with _roots(db, wishes, at=instant) as roots:
            found = await _found(roots, wanted, offline=offline, most=_most(wishes))
        added = []
        for text, what in zip(wanted, found, strict=True):
            try:
                domain = await _register(db, _or_raise(what), wishes, at=instant)
                added.append(Added(text, domain, warning=_or_raise(what).warning))
            except BadInput as error:
                if not many and len(wanted) == 1:
                    raise
                added.append(Added(text, None, error=str(error)))
        return added

    results = with_database(work)
    _show_added(results, as_json=as_json)
    return PROBLEM if any(result.domain is None for result in results) else DONE


def _lines(source: str) -> list[str]:
    """The names in a file, one a line; blank lines and comments are passed over."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadInput(f"{source} cannot be read: {reason}") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


async def _found(roots: Roots, texts: Sequence[str], *, offline: bool, most: int | None) -> list[Found | BadInput]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(text: str) -> Found | BadInput:
        try:
            if offline:
                return unasked(text)
            async with turn:
                return await look_up(roots, text, deadline=settings().deadline, most=most)
        except BadInput as error:
            return error

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(one(text)) for text in texts]
    return [task.result() for task in asked]


def _or_raise(found: Found | BadInput) -> Found:
    if isinstance(found, BadInput):
        raise found
    return found


@asynccontextmanager
async def _roots(db: Database, wishes: Wishes, *, at: datetime) -> AsyncIterator[Roots]:
    """What asks the roots of domains with these wishes; in the end it is on the account of all domains together."""
    left = await claim.left_together(db, settings().shared_budget, at=at)
    async with Http(
        user_agent=settings().user_agent,
        allow_private=wishes.allow_private,
        max_body_bytes=settings().max_body_bytes,
    ) as web:
        roots = Roots(web, delay=settings().delay_of(wishes), left=left)
        try:
            yield roots
        finally:
            if left is not None and roots.requests:
                await claim.charge_together(db, requests=roots.requests, received_bytes=roots.received_bytes, at=at)


async def _register(db: Database, found: Found, wishes: Wishes, *, at: datetime) -> Domain:
    delay = settings().delay_of(wishes) if found.requests else timedelta(0)
    return await register(db, found, wishes, delay=delay, at=at)


def _most(wishes: Wishes) -> int | None:
    """Requests that a new domain's budget allows today; None: no limit."""
    return 0 if wishes.bytes_per_day == 0 else wishes.budget_per_day


def wishes_of(said: Said) -> Wishes:
    """The wishes of a domain that is registered now."""
    return replace(said.applied_to(Wishes()), seeds=tuple(map(url_of, said.seeds or ())))


async def ask_and_register(db: Database, text: str, said: Said, *, offline: bool, at: datetime) -> Domain:
    """Register one domain, with a remark on what its root said. Raises BadInput."""
    wishes = wishes_of(said)
    async with _roots(db, wishes, at=at) as roots:
        (found,) = map(_or_raise, await _found(roots, [text], offline=offline, most=_most(wishes)))
    existing = await domains.find(db, found.authority)  # typed by a name that was not known as an alias
    if existing is not None:
        if found.requests:
            await domains.asked(db, existing, delay=settings().delay_of(existing.wishes))
            await charge(db, existing, found, at=at)
        return existing
    domain = await _register(db, found, wishes, at=at)
    remark(f"Registered {domain.root}{_also(domain)}")
    if found.warning:
        remark(found.warning)
    return domain


def _also(domain: Domain) -> str:
    return f" (also {', '.join(sorted(domain.aliases))})" if domain.aliases else ""


def _show_added(results: Sequence[Added], *, as_json: bool) -> None:
    for result in results:
        if result.error:
            remark(f"recrawl: {result.text}: {result.error}")
        if result.warning:
            remark(result.warning)
    if as_json:
        print_json(
            {
                "registered": [
                    described(result.domain) | ({"warning": result.warning} if result.warning else {})
                    for result in results
                    if result.domain is not None
                ],
                "failed": [{"name": result.text, "error": result.error} for result in results if result.error],
            }
        )
        return
    for result in results:
        if result.domain is not None:
            say(f"Registered {result.domain.root}{_also(result.domain)}")


def described(domain: Domain) -> dict[str, object]:
    """A domain for JSON."""
    wishes = domain.wishes
    return {
        "domain": domain.authority,
        "root": domain.root,
        "aliases": sorted(domain.aliases),
        "paused": domain.paused,
        "registered_at": domain.registered_at,
        "settings": {
            "seeds": list(wishes.seeds),
            "weight": wishes.weight,
            "budget_per_day": wishes.budget_per_day,
            "bytes_per_day": wishes.bytes_per_day,
            "target_freshness": wishes.target_freshness,
            "target_age_seconds": seconds(wishes.target_age),
            "delay_seconds": seconds(wishes.delay),
            "parallelism": wishes.parallelism,
            "max_depth": wishes.max_depth,
            "max_pages": wishes.max_pages,
            "include": list(wishes.include),
            "exclude": list(wishes.exclude),
            "allow_private": wishes.allow_private,
            "order": wishes.ordering.order.value,
            "url_share": wishes.ordering.url_share,
            "favour": list(wishes.ordering.favour),
            "favour_by": wishes.ordering.favour_by,
            "discovery": wishes.ordering.discovery,
            "refresh": wishes.ordering.refresh,
            "external_links": wishes.external_links,
            "rules": [described_rule(rule) for rule in wishes.rules],
        },
    }


def described_rule(rule: Rule) -> dict[str, object]:
    """A rule for JSON; null where it says nothing."""
    return {
        "pattern": rule.pattern,
        "least_seconds": seconds(rule.least),
        "most_seconds": seconds(rule.most),
        "weight": rule.weight,
        "once": rule.once,
        "max_pages": rule.max_pages,
        "ignore": rule.view.ignore,
        "watch": rule.view.watch,
        "ignore_text": rule.view.ignore_text,
    }


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
