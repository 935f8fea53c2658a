"""What the stack asks of a Prefect server: its deployments and work pool, and an end for runs that are dead.

Import this only after the variables of environment.py are set: prefect reads them when it is imported, here.
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

COMMAND = "python -m prefect.engine"
DOMAIN_PARAMETER = "domain"  # the parameter of a flow that names one
MAX_OFFERED = 500  # in a list of a form; beyond that nobody looks for a name in it
LIVE_STATES = [objects.StateType.RUNNING, objects.StateType.PENDING, objects.StateType.CANCELLING]
ZOMBIE_AUTOMATION = "recrawl: mark runs as crashed that have gone silent"
# Three heartbeats and a little: a run whose machine is busy may miss one, even two.
MAX_SILENCE = timedelta(seconds=3 * HEARTBEAT_SECONDS + 30)
POOL_FILTER = filters.WorkPoolFilter(name=filters.WorkPoolFilterName(any_=[POOL]))
END_STATES = ("Completed", "Failed", "Cancelled", "Crashed", "Paused")


class DeploymentPool(BaseModel):
    """The work pool of a deployment; its name is that of ours."""

    job_variables: dict[str, Any] = {}


class Deployment(BaseModel):
    """One entry of a prefect.yaml."""

    name: str
    entrypoint: str
    description: str | None = None
    tags: list[str] = []
    parameters: dict[str, Any] = {}
    schedules: list[dict[str, Any]] = []
    concurrency_limit: objects.ConcurrencyLimitConfig | None = None
    work_pool: DeploymentPool


@asynccontextmanager
async def open_client(api: PrefectApi) -> AsyncIterator[PrefectClient]:
    """A client of that server, whatever this process was set to before."""
    with temporary_settings({PREFECT_API_URL: api.url, PREFECT_API_AUTH_STRING: api.auth}):
        async with get_client() as client:
            yield client


async def read_secret_block(api: PrefectApi, name: str) -> str | None:
    """The text in a Secret block; None where there is none of that name, or no text in it."""
    async with open_client(api) as client:
        try:
            block = await client.read_block_document_by_name(name, "secret", include_secrets=True)
        except ObjectNotFound:
            return None
    value = block.data.get("value")
    return value if isinstance(value, str) else None


async def ensure_deployments(api: PrefectApi, file: Path, *, is_ours: bool) -> int:
    """See to the work pool, and to the deployments of a prefect.yaml; gives how many were new or different.

    What is there already in this version is left alone, with the schedules that a user has paused or changed and the
    runs that are waiting.  is_ours: the server is this home's own, and so is the pool.
    """
    version, automations = compute_version(file), read_automations(file.with_name("automations.yaml"))
    async with open_client(api) as client:
        await ensure_pool(client, is_ours=is_ours)
        for automation in (build_zombie_automation(), *automations):
            # One of its name its user may have changed or disabled.
            if not await client.read_automations_by_name(automation.name):
                await client.create_automation(automation)
        registered = {each.name: each.version for each in await client.read_deployments()}
        changed = [deployment for deployment in read_deployments(file) if registered.get(deployment.name) != version]
        for deployment in changed:
            await register_deployment(client, deployment, version=version)
        return len(changed)


def compute_version(file: Path) -> str:
    """A name for what a prefect.yaml and the flows that it speaks of (FILE/../../flows) say now."""
    digest = hashlib.sha256(file.read_bytes())
    for source in sorted((file.parent.parent / "flows").glob("**/*.py")):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:12]


def read_deployments(file: Path) -> list[Deployment]:
    """The deployments that a prefect.yaml names."""
    return [Deployment.model_validate(entry) for entry in yaml.safe_load(file.read_bytes())["deployments"]]


async def register_deployment(client: PrefectClient, deployment: Deployment, *, version: str) -> None:
    """Make or replace one deployment.

    Prefect's own deploy command does the same from the same file. Its functions are not used, since they note the
    working directory as the place of the code, and every run would begin by copying all of that.
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
        job_variables=deployment.work_pool.job_variables,
        pull_steps=[],
    )


async def offer_domains(client: PrefectClient, db: Database) -> None:
    """Let the forms that ask for a domain offer those that are registered, at most MAX_OFFERED of them, in order.

    Whoever starts a run by the API may name one that was registered since; the run itself knows which there are.
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
    """See to it that the pool is there, and that no run can choose the command that its worker starts for it.

    is_ours: the server is this home's own; with another's, a pool in which somebody has named a command stays.
    """
    try:
        pool = await client.read_work_pool(POOL)
    except ObjectNotFound:
        template = fix_command(ProcessWorker.get_default_base_job_template())
        # Another home's command may be quicker on a server that both use, and a retry finds what the first try made.
        with suppress(ObjectAlreadyExists):
            await client.create_work_pool(actions.WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        return
    fixed = fix_command(pool.base_job_template)
    if fixed != pool.base_job_template and (is_ours or find_command(pool.base_job_template) in {None, COMMAND}):
        await client.update_work_pool(POOL, actions.WorkPoolUpdate(base_job_template=fixed))


def fix_command(template: dict[str, Any]) -> dict[str, Any]:
    """A pool's template in which the command is no variable: what a run says of it is not listened to."""
    fixed = deepcopy(template)
    # By default each run first prepares a workspace for code from elsewhere, which may even install things.
    fixed.setdefault("job_configuration", {})["command"] = COMMAND
    fixed.get("variables", {}).get("properties", {}).pop("command", None)
    return fixed


def find_command(template: dict[str, Any]) -> str | None:
    """The command that a pool's runs are started with where they do not choose one; None: Prefect's own way."""
    configured = template.get("job_configuration", {}).get("command")
    variable: dict[str, Any] = template.get("variables", {}).get("properties", {}).get("command", {})
    is_variable = isinstance(configured, str) and configured.strip("{} ") == "command"
    command = variable.get("default") if is_variable else configured
    return str(command) if command is not None else None


def build_zombie_automation() -> AutomationCore:
    """The automation by which a run that is gone, with nobody left to say so, does not stay Running for ever."""
    heartbeat = "prefect.flow-run.heartbeat"
    return AutomationCore(
        name=ZOMBIE_AUTOMATION,
        trigger=EventTrigger(
            after={heartbeat},
            expect={heartbeat, *(f"prefect.flow-run.{state}" for state in END_STATES)},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=MAX_SILENCE,
        ),
        actions=[ChangeFlowRunState(state=objects.StateType.CRASHED, message="no heartbeat: its process is gone")],
    )


def read_automations(file: Path) -> list[AutomationCore]:
    """The automations in a file such as deployments/automations.yaml; none where there is no such file."""
    entries = yaml.safe_load(file.read_bytes())["automations"] if file.exists() else ()
    return [AutomationCore.model_validate(entry) for entry in entries]


async def list_live_runs(client: PrefectClient) -> list[objects.FlowRun]:
    """The runs of our work pool that have begun and not ended, as far as the server knows."""
    run_filter = filters.FlowRunFilter(state=_build_state_filter(*LIVE_STATES))
    return await client.read_flow_runs(work_pool_filter=POOL_FILTER, flow_run_filter=run_filter)


def _build_state_filter(*types: objects.StateType) -> filters.FlowRunFilterState:
    return filters.FlowRunFilterState(type=filters.FlowRunFilterStateType(any_=list(types)))


async def mark_dead_runs(api: PrefectApi) -> int:
    """Mark as crashed what the server believes to run, while no worker of the pool runs; gives how many."""
    async with open_client(api) as client:
        dead = await list_live_runs(client)
        for run in dead:
            await _set_end_state(client, run, Crashed(message="its process was gone when the stack was started again"))
        return len(dead)


async def _set_end_state(client: PrefectClient, run: objects.FlowRun, state: objects.State[Any]) -> None:
    """Say how a run ended whose process is gone, and its tasks with it: the server would show them running for ever."""
    await client.set_flow_run_state(run.id, state, force=True)
    tasks = await client.read_task_runs(
        flow_run_filter=filters.FlowRunFilter(id=filters.FlowRunFilterId(any_=[run.id])),
        task_run_filter=filters.TaskRunFilter(
            state=filters.TaskRunFilterState(type=filters.TaskRunFilterStateType(any_=LIVE_STATES))
        ),
    )
    for task in tasks:
        await client.set_task_run_state(task.id, state, force=True)


async def delete_late_runs(api: PrefectApi) -> int:
    """Delete the scheduled runs whose time passed while nothing ran: the next one does what they would have done."""
    async with open_client(api) as client:
        run_filter = filters.FlowRunFilter(
            state=_build_state_filter(objects.StateType.SCHEDULED),
            expected_start_time=filters.FlowRunFilterExpectedStartTime(before_=datetime.now(UTC)),
        )
        late = await client.read_flow_runs(work_pool_filter=POOL_FILTER, flow_run_filter=run_filter)
        scheduled = [run for run in late if run.auto_scheduled]
        for run in scheduled:
            await client.delete_flow_run(run.id)
        return len(scheduled)


async def cancel_runs(api: PrefectApi, *, only: Collection[UUID] | None) -> list[UUID]:
    """Ask the living runs of the pool to end; gives them. only: those of this machine, where others share the pool.

    Ask again after a while: a worker that is connecting again to a server that was restarted does not hear it. Not
    sooner, since what is asked of a run in the moment of its end is asked for ever.
    """
    async with open_client(api) as client:
        runs = [run for run in await list_live_runs(client) if only is None or run.id in only]
        for run in runs:
            # Nobody would ever confirm the end of a run that has not begun.
            has_begun = run.start_time is not None
            message = "the stack is going down"
            state: objects.State[Any] = Cancelling(message=message) if has_begun else Cancelled(message=message)
            # The server's rules let nothing be asked twice.
            await client.set_flow_run_state(run.id, state, force=True)
        return [run.id for run in runs]


async def list_still_live(api: PrefectApi, runs: Collection[UUID]) -> list[UUID]:
    """The runs that have not ended."""
    async with open_client(api) as client:
        return [run.id for run in await list_live_runs(client) if run.id in runs]


async def mark_cancelled(api: PrefectApi, runs: Sequence[UUID]) -> None:
    """Say of those runs that did not end by themselves, and were killed, that they are cancelled."""
    async with open_client(api) as client:
        for run in await list_live_runs(client):
            if run.id in runs:
                await _set_end_state(client, run, Cancelled(message="killed while the stack went down"))


async def has_worker(api: PrefectApi, name: str) -> bool:
    """Whether the server has heard from this worker of the pool."""
    async with open_client(api) as client:
        workers = await client.read_workers_for_work_pool(POOL)
        return any(worker.name == name and worker.status is objects.WorkerStatus.ONLINE for worker in workers)
