"""plan: what all domains together say about each."""

from collections.abc import Mapping
from datetime import UTC, datetime

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact

from crawler.local.stack import crawl_database
from crawler.plan import plan as plan_all
from crawler.settings import settings
from crawler.store import domains
from crawler.store.database import open_database
from flows.lease import if_heard
from flows.shift import instant

SHOWN = 100  # domains in the artifact, the most important ones


@flow(name="plan", flow_run_name="plan", persist_result=False)
async def plan(at: str = "") -> dict[str, float]:
    """Work out how important each domain is beside the others, by the links between them and their users' weights.

    Args:
        at: Knowledge time, such as 2026-01-31T12:00:00Z; empty for now.

    """
    with crawl_database(settings()) as url:
        async with open_database(url) as db:
            importance = await plan_all(db, at=instant(at) or datetime.now(UTC))
            names = {listed.domain.id: listed.domain.authority for listed in await domains.every(db)}
    planned: dict[str, float] = {names[domain]: found for domain, found in importance.items() if domain in names}
    await if_heard(acreate_markdown_artifact(markdown(planned), key="plan-result", description="What was planned"))
    return planned


def markdown(planned: Mapping[str, float]) -> str:
    """The domains by importance, as a person reads it."""
    rows = sorted(planned.items(), key=lambda pair: (-pair[1], pair[0]))
    return "\n".join(
        ["| domain | importance |", "|---|---:|", *(f"| {name} | {found:.2f} |" for name, found in rows[:SHOWN])]
    )
