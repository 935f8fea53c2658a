"""recrawl deploy, server, worker and health: the services for containers, Kubernetes and systemd."""

from datetime import timedelta
from typing import Annotated

from crawler.cli import values
from crawler.cli.lazy import local_stack
from crawler.cli.options import Json, flag, option
from crawler.cli.output import print_json, print_outcome, remark, show_table
from crawler.cli.session import DONE, PROBLEM, settings

PATIENCE_SECONDS = 120.0


def deploy(
    upgrade: Annotated[bool, flag("--upgrade", "Upgrade the database to the current schema first.")] = False,
    wait: Annotated[
        float, option("SECONDS", "How long to wait for the database and the Prefect server.", min=0)
    ] = PATIENCE_SECONDS,
    as_json: Json = False,
) -> None:
    """Prepare the database and the Prefect server for workers.

    Run this once per version of recrawl, before the workers start. Repeating it does no harm.

    Examples:

        recrawl deploy --upgrade
    """
    patience = timedelta(seconds=wait)
    registered = local_stack.deploy(settings(), may_upgrade=upgrade, patience=patience, report=remark)
    message = f"Deployments: {registered} registered" if registered else "Deployments: up to date"
    print_outcome({"registered": registered}, message, as_json=as_json)


def server(
    host: Annotated[
        str,
        option(
            "ADDRESS",
            "The IP address to listen on. With an address other than loopback, other machines can connect.",
            parser=values.parse_ip_address,
        ),
    ] = "127.0.0.1",
    port: Annotated[int, option("N", "The port to listen on.", min=1, max=65_535)] = 4200,
    address: Annotated[str | None, option("URL", "The URL for browsers. Default: this port of this machine.")] = None,
) -> None:
    """Run the Prefect server in the foreground. (The web UI of recrawl is `recrawl serve`.)

    RECRAWL_PREFECT_DATABASE_URL selects its Postgres database. PREFECT_API_AUTH_STRING is the auth string that clients
    must send.

    Examples:

        recrawl server
        recrawl server --host 0.0.0.0 --address https://prefect.example.com
    """
    local_stack.serve_prefect(settings(), host=host, port=port, address=address, report=remark)


def worker(
    limit: Annotated[int | None, option("N", "Maximum number of concurrent runs. Default: no limit.", min=1)] = None,
    grace: Annotated[
        float, option("SECONDS", "How long runs may take to finish after SIGTERM.", min=1)
    ] = PATIENCE_SECONDS,
) -> None:
    """Run, in the foreground, a worker that executes the flow runs scheduled by the Prefect server.

    The worker waits for the database (RECRAWL_DATABASE_URL) and the Prefect server (PREFECT_API_URL). On SIGTERM, it
    finishes and records the requests in progress and releases its domains.

    Examples:

        recrawl worker
        RECRAWL_METRICS_PORT=9464 recrawl worker --limit 2
    """
    local_stack.run_worker(settings(), max_runs=limit, patience=timedelta(seconds=grace), report=remark)


def health(
    liveness: Annotated[
        bool, flag("--liveness", "Check only the process, not its dependencies: for a liveness probe.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check that the worker or the web UI is running and can reach its dependencies.

    The command checks what runs with this RECRAWL_HOME. Exit code 1 if something is not healthy.

    Examples:

        recrawl health
        recrawl health --liveness
    """
    parts = local_stack.check_health(settings(), alive_only=liveness)
    is_healthy = all(each.is_healthy for each in parts)
    if as_json:
        print_json({"is_healthy": is_healthy, "parts": parts})
    else:
        show_table(["part", "state"], [(each.part, each.problem or "healthy") for each in parts])
    return DONE if is_healthy else PROBLEM
