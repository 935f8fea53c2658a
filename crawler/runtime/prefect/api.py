"""Calls of the Prefect API: deployments, the work pool, and cleanup of dead runs.

Import this module only after setting the variables of environment.py, because the import of prefect reads them.
"""

import hashlib
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas import actions, filters, objects
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.schedules import Schedule
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.states import Cancelled, Cancelling, Crashed
from prefect.utilities.callables import parameter_schema
from prefect.workers.process import ProcessWorker
from pydantic import BaseModel

from crawler.runtime.environment import HEARTBEAT_SECONDS, POOL, PrefectApi
from crawler.store import domains
from crawler.store.database import Database

COMMAND = "python -m prefect.engine"  # of each run
DOMAIN_PARAMETER = "domain"  # the parameter of a flow that names a domain
MAX_OFFERED = 500  # domains in the list of a form
LIVE_STATES = [objects.StateType.RUNNING, objects.StateType.PENDING, objects.StateType.CANCELLING]
POOL_FILTER = filters.WorkPoolFilter(name=filters.WorkPoolFilterName(any_=[POOL]))
END_STATES = ("Completed", "Failed", "Cancelled", "Crashed", "Paused")


class Deployment(BaseModel):
    """One entry of a prefect.yaml. work_pool: its settings; the name is always POOL."""

    name: str
    entrypoint: str
    description: str | None = None
    tags: list[str] = []
    parameters: dict[str, Any] = {}
    schedules: list[dict[str, Any]] = []
    concurrency_limit: objects.ConcurrencyLimitConfig | None = None
    work_pool: dict[str, Any]


@asynccontextmanager
async def open_client(api: PrefectApi) -> AsyncIterator[PrefectClient]:
    """Open a client of this server, whatever server the settings of the process name."""
    with temporary_settings({PREFECT_API_URL: api.url, PREFECT_API_AUTH_STRING: api.auth}):
        async with get_client() as client:
            yield client


async def read_secret_block(api: PrefectApi, name: str) -> str | None:
    """Return the text of a Secret block; None if it does not exist or contains no text."""
    async with open_client(api) as client:
        try:
            block = await client.read_block_document_by_name(name, "secret", include_secrets=True)
        except ObjectNotFound:
            return None
    value = block.data.get("value")
    return value if isinstance(value, str) else None


async def ensure_deployments(api: PrefectApi, file: Path, *, is_ours: bool) -> int:
    """Create the work pool, automations, and the deployments of a prefect.yaml. Return how many deployments changed.

    Deployments of the current version are not changed, so paused or edited schedules and waiting runs are kept.
    is_ours: whether the server and its pool belong to this home.
    """
    version, automations = compute_version(file), file.with_name("automations.yaml")
    entries = yaml.safe_load(automations.read_bytes())["automations"] if automations.exists() else ()
    wanted = [build_zombie_automation(), *map(AutomationCore.model_validate, entries)]
    async with open_client(api) as client:
        await ensure_pool(client, is_ours=is_ours)
        for automation in wanted:
            # The user may have changed or disabled an existing one.
            if not await client.read_automations_by_name(automation.name):
                await client.create_automation(automation)
        registered = {each.name: each.version for each in await client.read_deployments()}
        changed = [each for each in read_deployments(file) if registered.get(each.name) != version]
        for deployment in changed:
            await register_deployment(client, deployment, version=version)
        return len(changed)


def compute_version(file: Path) -> str:
    """Return a hash of a prefect.yaml and of the folder `flows` next to its folder: the version of its deployments."""
    digest = hashlib.sha256(file.read_bytes())
    for source in sorted((file.parent.parent / "flows").glob("**/*.py")):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:12]


def read_deployments(file: Path) -> list[Deployment]:
    """Return the deployments of a prefect.yaml."""
    return [Deployment.model_validate(entry) for entry in yaml.safe_load(file.read_bytes())["deployments"]]


async def register_deployment(client: PrefectClient, deployment: Deployment, *, version: str) -> None:
    """Create or replace one deployment.

    `prefect deploy` does the same with the same file. Its functions are not used, because they record the working
    directory as the location of the code, which every run would copy first.
    """
    flow: Flow[Any, Any] = load_flow_from_entrypoint(deployment.entrypoint)
    limit = deployment.concurrency_limit
    await client.create_deployment(
        flow_id=await client.create_flow(flow),
        name=deployment.name,
        version=version,
        description=deployment.description or flow.description,
        entrypoint=deployment.entrypoint,
        parameters=deployment.parameters,
        parameter_openapi_schema=parameter_schema(flow).model_dump(exclude_unset=True),
        enforce_parameter_schema=True,
        schedules=[actions.DeploymentScheduleCreate.from_schedule(Schedule(**each)) for each in deployment.schedules],
        concurrency_limit=limit.limit if limit is not None else None,
        concurrency_options=objects.ConcurrencyOptions(collision_strategy=limit.collision_strategy) if limit else None,
        tags=deployment.tags,
        work_pool_name=POOL,
        job_variables=deployment.work_pool.get("job_variables", {}),
        pull_steps=[],
    )


async def offer_domains(client: PrefectClient, db: Database) -> None:
    """List the registered domains, at most MAX_OFFERED, in the forms with a domain parameter.

    A run that is started by the API may name another domain; the run checks whether it is registered.
    """
    offered = sorted(listed.domain.authority for listed in await domains.list_domains(db))[:MAX_OFFERED]
    for deployment in await client.read_deployments(work_pool_filter=POOL_FILTER):
        schema = deepcopy(deployment.parameter_openapi_schema)
        domain_field = schema.get("properties", {}).get(DOMAIN_PARAMETER) if schema else None
        if schema is None or domain_field is None:
            continue
        blank = [] if DOMAIN_PARAMETER in schema.get("required", ()) else [""]
        domain_field.pop("enum", None)
        if offered:
            domain_field["enum"] = blank + offered
        if schema != deployment.parameter_openapi_schema or deployment.enforce_parameter_schema:
            update = actions.DeploymentUpdate(parameter_openapi_schema=schema, enforce_parameter_schema=False)
            await client.update_deployment(deployment.id, update)


async def ensure_pool(client: PrefectClient, *, is_ours: bool) -> None:
    """Create the pool if needed, and make its command constant, so that runs cannot choose what the worker starts.

    is_ours: whether the server belongs to this home; on other servers, a pool with a custom command is not changed.
    """
    try:
        pool = await client.read_work_pool(POOL)
    except ObjectNotFound:
        template = fix_command(ProcessWorker.get_default_base_job_template())
        # Another home may create the pool first on a shared server; also, a retry finds the pool of the first attempt.
        with suppress(ObjectAlreadyExists):
            await client.create_work_pool(actions.WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        return
    fixed = fix_command(pool.base_job_template)
    if fixed != pool.base_job_template and (is_ours or find_command(pool.base_job_template) in {None, COMMAND}):
        await client.update_work_pool(POOL, actions.WorkPoolUpdate(base_job_template=fixed))


def fix_command(template: dict[str, Any]) -> dict[str, Any]:
    """Return the template of a pool with a constant command instead of a variable that runs can set."""
    fixed = deepcopy(template)
    # By default, each run first prepares a workspace for remote code, and may even install packages.
    fixed.setdefault("job_configuration", {})["command"] = COMMAND
    fixed.get("variables", {}).get("properties", {}).pop("command", None)
    return fixed


def find_command(template: dict[str, Any]) -> str | None:
    """Return the default command of the runs of a pool; None for the default of Prefect."""
    configured = template.get("job_configuration", {}).get("command")
    variable: dict[str, Any] = template.get("variables", {}).get("properties", {}).get("command", {})
    is_variable = isinstance(configured, str) and configured.strip("{} ") == "command"
    command = variable.get("default") if is_variable else configured
    return str(command) if command is not None else None


def build_zombie_automation() -> AutomationCore:
    """Return the automation that marks a run as crashed if its process is gone; otherwise it would stay Running."""
    heartbeat = "prefect.flow-run.heartbeat"
    return AutomationCore(
        name="recrawl: mark runs as crashed that have gone silent",
        trigger=EventTrigger(
            after={heartbeat},
            expect={heartbeat, *(f"prefect.flow-run.{state}" for state in END_STATES)},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            # Three heartbeats and a margin: a run on a busy machine may miss one or two.
            within=timedelta(seconds=3 * HEARTBEAT_SECONDS + 30),
        ),
        actions=[ChangeFlowRunState(state=objects.StateType.CRASHED, message="no heartbeat: its process is gone")],
    )


async def list_live_runs(client: PrefectClient) -> list[objects.FlowRun]:
    """Return the runs of the work pool that are pending, running or being canceled, according to the server."""
    run_filter = filters.FlowRunFilter.model_validate({"state": {"type": {"any_": LIVE_STATES}}})
    return await client.read_flow_runs(work_pool_filter=POOL_FILTER, flow_run_filter=run_filter)


async def mark_dead_runs(api: PrefectApi) -> int:
    """Mark all live runs as crashed and return their number. Call it only while the pool has no worker."""
    async with open_client(api) as client:
        dead = await list_live_runs(client)
        for run in dead:
            await _set_end_state(client, run, Crashed(message="its process was gone when the stack was started again"))
        return len(dead)


async def _set_end_state(client: PrefectClient, run: objects.FlowRun, state: objects.State[Any]) -> None:
    """Set the end state of a run whose process is gone, and of its tasks, which would otherwise stay Running."""
    await client.set_flow_run_state(run.id, state, force=True)
    run_filter = filters.FlowRunFilter.model_validate({"id": {"any_": [run.id]}})
    task_filter = filters.TaskRunFilter.model_validate({"state": {"type": {"any_": LIVE_STATES}}})
    for task in await client.read_task_runs(flow_run_filter=run_filter, task_run_filter=task_filter):
        await client.set_task_run_state(task.id, state, force=True)


async def delete_late_runs(api: PrefectApi) -> int:
    """Delete late runs that a schedule has created, because the next run does their work. Return their number."""
    async with open_client(api) as client:
        scheduled_state, past = {"type": {"any_": [objects.StateType.SCHEDULED]}}, {"before_": datetime.now(UTC)}
        run_filter = filters.FlowRunFilter.model_validate({"state": scheduled_state, "expected_start_time": past})
        late = await client.read_flow_runs(work_pool_filter=POOL_FILTER, flow_run_filter=run_filter)
        scheduled = [run for run in late if run.auto_scheduled]
        for run in scheduled:
            await client.delete_flow_run(run.id)
        return len(scheduled)


async def cancel_runs(api: PrefectApi, *, only: Collection[UUID] | None) -> list[UUID]:
    """Cancel the live runs of the pool and return them. only: the runs to cancel; None for all.

    Repeat the call after some seconds, because a worker that is reconnecting to a restarted server misses a
    cancellation. But not at once: a run that is canceled at the moment of its end stays Cancelling forever.
    """
    async with open_client(api) as client:
        runs = [run for run in await list_live_runs(client) if only is None or run.id in only]
        for run in runs:
            # A run that has not started cannot confirm a cancellation.
            build_state = Cancelling if run.start_time is not None else Cancelled
            state: objects.State[Any] = build_state(message="the stack is shutting down")
            # Without force, the server rejects a second cancellation.
            await client.set_flow_run_state(run.id, state, force=True)
        return [run.id for run in runs]


async def list_still_live(api: PrefectApi, runs: Collection[UUID]) -> list[UUID]:
    """Return those of the runs that have not ended."""
    async with open_client(api) as client:
        return [run.id for run in await list_live_runs(client) if run.id in runs]


async def mark_cancelled(api: PrefectApi, runs: Sequence[UUID]) -> None:
    """Mark the runs that had to be killed as canceled."""
    async with open_client(api) as client:
        for run in await list_live_runs(client):
            if run.id in runs:
                await _set_end_state(client, run, Cancelled(message="killed while the stack was shutting down"))


async def has_worker(api: PrefectApi, name: str) -> bool:
    """Return whether this worker of the pool is online, according to the server."""
    async with open_client(api) as client:
        workers = await client.read_workers_for_work_pool(POOL)
        return any(worker.name == name and worker.status is objects.WorkerStatus.ONLINE for worker in workers)
