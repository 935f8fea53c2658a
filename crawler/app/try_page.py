"""Try a page: fetch it without recording it, and determine which blocks are compared and which changes count."""

from datetime import datetime

from msgspec.structs import asdict, replace

from crawler.app.database import AppDatabase
from crawler.app.registration import get_domain, parse_typed_url, require_after_last_visit
from crawler.app.status import find_wait, format_wait
from crawler.clock import Clock
from crawler.core.change.change import Change, MaskReason
from crawler.core.change.difference import Difference, compute_difference
from crawler.core.change.explain import ExplainedBlock, explain_blocks, explain_insignificance
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched, Unreached
from crawler.core.http.urls import Url
from crawler.core.page.values import PageValue
from crawler.core.rendering.outcome import RenderChoice
from crawler.engine.resources import open_resources
from crawler.engine.try_page import TryOptions, TryResult, try_page
from crawler.format.reasons import format_reason
from crawler.json_lines import pick_fields
from crawler.plugins import load_plugins
from crawler.runtime.secrets import build_secret_finder
from crawler.store.report import read_target


async def try_url(db: AppDatabase, text: str, *, how: TryOptions, at: datetime | None) -> TryResult:
    """Try a page of a registered domain. at: knowledge time; None for now. Raises BadInput."""
    url = parse_typed_url(text)
    load_plugins(db.settings.plugins)
    domain = await get_domain(db, text)
    await require_after_last_visit(db, [domain], at)
    return await try_domain_url(db, domain, url, how=how, clock=Clock.from_instant(at))


async def try_domain_url(db: AppDatabase, domain: Domain, url: Url, *, how: TryOptions, clock: Clock) -> TryResult:
    """Try a page of a domain. If it may not be fetched now, the result's `problem` says why."""
    page_url = domain.build_scope(max_depth=db.settings.max_depth).to_domain_url(url)
    wait = await find_wait(db, domain, at=clock.now())
    if wait is not None and wait.reason.is_obstacle:
        problem = f"{domain.authority} {format_wait(wait, domain, now=clock.now())}"
        return TryResult(await read_target(db, domain, page_url), clock.now(), problem=problem)
    async with open_resources(db.settings, find_secret=build_secret_finder(db.settings)) as resources:
        result = await try_page(db, resources, domain, page_url, settings=db.settings, clock=clock, options=how)
    return replace(result, problem=format_reason(result.problem))


def list_differences(result: TryResult) -> list[tuple[Difference, MaskReason]]:
    """Return the differences from the last version, each with the reason why it does not count as a change, if any."""
    if result.baseline is None or result.parsed is None:
        return []
    mask, then, now = result.new_mask, result.baseline.at, result.at
    differences = compute_difference(result.baseline.blocks, result.parsed.blocks, mask.volatile).single_changes
    return [(each, explain_insignificance(each, mask, then=then, now=now)) for each in differences]


def list_volatile_differences(result: TryResult) -> list[Difference]:
    """Return the differences between this fetch and the next one, seconds later."""
    if result.parsed is None or not result.second_fetches:
        return []
    return compute_difference(result.parsed.blocks, result.second_fetches[0], result.old_mask.volatile).single_changes


def list_blocks(result: TryResult) -> list[ExplainedBlock]:
    """Return the blocks of the page, each with its masked parts and the reason."""
    if result.parsed is None:
        return []
    return explain_blocks(
        result.all_blocks, result.parsed.blocks, result.new_mask, view=result.view, blocks_by_rule=result.blocks_by_rule
    )


def get_sides(each: Difference) -> tuple[str, str | None, str | None]:
    """Return the kind of block that differs, and its text before and after; None where the block is missing."""
    ((before, after),) = each.sides
    return each.blocks[0].kind.value, before.text if before else None, after.text if after else None


def describe_trial(result: TryResult) -> dict[str, object]:
    """Return a trial for JSON."""
    version, visit = result.target.version, result.visit
    return {
        "url": result.target.url,
        "at": result.at,
        "problem": result.problem,
        "status": result.response.status if isinstance(result.response, Fetched) else None,
        "version": version.number if version else None,
        "version_at": result.baseline.at if result.baseline else None,
        "change": visit.change if visit else None,
        "evidence": visit.verdict.evidence if visit else None,
        "reason": visit.reason if visit else "",
        "parts": sorted(visit.verdict.significant.kinds) if visit else [],
        "values": [asdict(value) for value in result.parsed.values] if result.parsed else [],
        "differences": [
            _describe_difference(each) | {"is_significant": not reason, "reason": reason}
            for each, reason in list_differences(result)
        ],
        "seconds_later": [_describe_difference(each) for each in list_volatile_differences(result)],
        "blocks": [_describe_block(block) for block in list_blocks(result)],
    }


def _describe_difference(each: Difference) -> dict[str, object]:
    return dict(zip(("part", "before", "after"), get_sides(each), strict=True))


def _describe_block(block: ExplainedBlock) -> dict[str, object]:
    masked = [block.text[start:end] for start, end in block.masked]
    about = {"part": block.kind, "masked": masked, "is_masked": block.is_whole, "reason": block.why}
    return about | pick_fields(block, "text", "rule")
