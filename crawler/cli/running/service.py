"""recrawl deploy, server, worker, health: what containers, Kubernetes and systemd run."""

from datetime import timedelta
from typing import Annotated

from crawler.cli import values
from crawler.cli.lazy import local_stack
from crawler.cli.options import Json, declare_flag, declare_option
from crawler.cli.output import print_json, print_outcome, remark, show_table
from crawler.cli.session import DONE, PROBLEM, settings

PATIENCE_SECONDS = 120.0


def deploy(
    upgrade: Annotated[
        bool, declare_flag("--upgrade", "Bring the database to the newest schema first, whatever it holds.")
    ] = False,
    wait: Annotated[
        float, declare_option("SECONDS", "How long database and Prefect server are waited for.", min=0)
    ] = PATIENCE_SECONDS,
    as_json: Json = False,
) -> None:
    """Prepare database and Prefect server for workers: once for each version, before they start. Twice does no harm.

    Examples:

        recrawl deploy --upgrade
    """
    patience = timedelta(seconds=wait)
    registered = local_stack.deploy(settings(), may_upgrade=upgrade, patience=patience, report=remark)
    message = f"Deployments: {registered} registered" if registered else "Deployments: all there"
    print_outcome({"registered": registered}, message, as_json=as_json)


def server(
    host: Annotated[
        str,
        declare_option(
            "ADDRESS",
            "Listen here; what is not this machine's own is open to its network.",
            parser=values.parse_ip_address,
        ),
    ] = "127.0.0.1",
    port: Annotated[int, declare_option("N", "Listen here.", min=1, max=65_535)] = 4200,
    address: Annotated[
        str | None, declare_option("URL", "Where browsers find it, if not at this port of this machine.")
    ] = None,
) -> None:
    """Run the Prefect server in the foreground, on a Postgres that is there; who asks it needs the auth string.

    RECRAWL_PREFECT_DATABASE_URL names its database, PREFECT_API_AUTH_STRING what it asks for.

    Examples:

        recrawl server
        recrawl server --host 0.0.0.0 --address https://prefect.example.com
    """
    local_stack.serve_prefect(settings(), host=host, port=port, address=address, report=remark)


def worker(
    limit: Annotated[int | None, declare_option("N", "Runs at a time; unset: no limit.", min=1)] = None,
    grace: Annotated[
        float, declare_option("SECONDS", "What runs get to end by themselves when this is to end.", min=1)
    ] = PATIENCE_SECONDS,
) -> None:
    """Crawl in the foreground what the Prefect server schedules. SIGTERM ends it in good order.

    RECRAWL_DATABASE_URL and PREFECT_API_URL name what it works with; both are waited for. What is under way when it is
    told to end is recorded, and its domains are given back.

    Examples:

        recrawl worker
        RECRAWL_METRICS_PORT=9464 recrawl worker --limit 2
    """
    local_stack.run_worker(settings(), max_runs=limit, patience=timedelta(seconds=grace), report=remark)


def health(
    liveness: Annotated[
        bool, declare_flag("--liveness", "Only whether the service lives, not what it needs: for a liveness probe.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Tell whether the worker or the pages of this RECRAWL_HOME live and can work. Exit code 1 where not.

    Examples:

        recrawl health
        recrawl health --liveness
    """
    parts = local_stack.check_health(settings(), alive_only=liveness)
    is_well = all(each.is_healthy for each in parts)
    if as_json:
        print_json({"well": is_well, "parts": parts})
    else:
        show_table(["part", "state"], [(each.part, each.problem or "well") for each in parts])
    return DONE if is_well else PROBLEM
