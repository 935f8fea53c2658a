"""add: a domain, by a form."""

from datetime import UTC, datetime

from prefect import State, flow, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from crawler.app.crawl import Targets
from crawler.app.database import open_database_of
from crawler.app.domains import add_domains
from crawler.settings import settings
from flows.choices import tell_forms
from flows.ending import says_why
from flows.form import SettingsForm, patch_in
from flows.lease import if_heard
from flows.shift import run


def _name() -> str:
    return f"add {flow_run.parameters.get('site', '')}"


@flow(name="add", flow_run_name=_name, persist_result=False)
@says_why
async def add(
    site: str,
    *,
    crawl_now: bool = True,
    domain_settings: SettingsForm = SettingsForm(),  # noqa: B008
) -> dict[str, object] | State[dict[str, object]]:
    """Register a domain and read it for the first time.

    Args:
        site: A name such as docs.example.com, or the URL of a page to begin with.
        crawl_now: Look at its pages at once; else they wait for the next scheduled crawl.
        domain_settings: What is left as it is means the default; all of it can be changed later.

    """
    chosen, now = settings(), datetime.now(UTC)
    patch = patch_in(domain_settings)
    async with open_database_of(chosen) as db:
        (added,) = await add_domains(db, chosen, [site], patch, at=now)
        domain = added.new_domain
        if added.warning:
            get_run_logger().warning("%s", added.warning)
        await if_heard(tell_forms(db))
        if not crawl_now:
            return {"domain": domain.authority}
        done, message = await run(db, chosen, Targets([domain]), at=None)
        return Completed(data={"domain": domain.authority} | done, message=message)
