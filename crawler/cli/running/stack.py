"""recrawl up, down, status, ui, serve and mcp: what runs on this machine."""

import sys
from typing import Annotated

from crawler.cli.lazy import local_stack, maintenance
from crawler.cli.options import Json, declare_flag, declare_option
from crawler.cli.output import print_json, print_outcome, remark, say, show_facts, show_table
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import BadInput, StackFailed
from crawler.extras import require_extra


def up(as_json: Json = False) -> None:
    """Start Postgres, a Prefect server, a worker and a page of one's own; they stay until `recrawl down`.

    Examples:

        recrawl up
        RECRAWL_HOME=/srv/recrawl recrawl up
    """
    running, web_ui_url = local_stack.start_local_stack(settings(), report=remark)
    if as_json:
        print_json({"ui": running.api.ui_url, "api": running.api.url, "home": str(running.home), "pages": web_ui_url})
    else:
        _say_addresses(web_ui_url, running.api.ui_url)
        if running.api.auth is not None:
            say("Prefect asks for a word: recrawl ui shows it")


def down(as_json: Json = False) -> None:
    """Stop what `recrawl up` started, and whatever that started in turn.

    Examples:

        recrawl down
    """
    stopped = local_stack.stop_stack(settings(), report=remark)
    message = "The stack is down" if stopped else "There was nothing to stop"
    print_outcome({"stopped": stopped}, message, as_json=as_json)


def _say_addresses(web_ui_url: str | None, prefect_url: str) -> None:
    if web_ui_url is not None:
        say(f"Web UI, opens once: {web_ui_url}")
    say(f"Prefect: {prefect_url}")


def ui(as_json: Json = False) -> None:
    """Show where the pages are, and what lets you in: an address for yours, a word for Prefect's. Keep it to yourself.

    Examples:

        recrawl ui
        PREFECT_API_AUTH_STRING=$(recrawl ui --json | jq -r .auth) prefect deployment ls
    """
    web_ui_url = local_stack.make_web_ui_link(settings())
    try:
        api = local_stack.find_prefect_server(settings())
    except StackFailed:
        if web_ui_url is None or as_json:
            raise
        say(f"Web UI, opens once: {web_ui_url}")
        remark("They are served by hand; no stack runs: recrawl up")
        return
    if as_json:
        print_json({"ui": api.ui_url, "api": api.url, "auth": api.auth, "pages": web_ui_url})
    else:
        _say_addresses(web_ui_url, api.ui_url)
        if api.auth is not None:
            say(f"Prefect asks for: {api.auth}")


def status(as_json: Json = False) -> int:
    """Show what runs of the local stack, and which domains wait for what. Exit code 1 where a part does not run.

    Examples:

        recrawl status
        recrawl status --json
    """
    stack_status = local_stack.read_stack_status(settings())
    if as_json:
        print_json({"running": stack_status.is_running, "parts": stack_status.parts, "waiting": stack_status.waiting})
    else:
        show_facts([("Home", str(settings().home.resolve()))])
        show_table(
            ["part", "state", "where"],
            [(part.name, "running" if part.is_running else "not running", part.detail) for part in stack_status.parts],
        )
        for line in stack_status.waiting:
            say(line)
    return DONE if stack_status.is_running else PROBLEM


def serve(
    host: Annotated[
        str, declare_option("ADDRESS", "Listen here; what is not this machine's own is open to its network.")
    ] = "127.0.0.1",
    port: Annotated[int | None, declare_option("N", "Else 4280, or any that is free.", min=1, max=65_535)] = None,
    quiet: Annotated[bool, declare_flag("--quiet", "Do not print the address that lets in: recrawl ui does.")] = False,
    as_json: Json = False,
) -> None:
    """Show a page of one's own in the browser: what changed, how fresh, what to worry about. Ctrl-C ends it.

    The address that it prints lets in once, and the browser stays let in for a month. Keep it to yourself.

    Examples:

        recrawl serve
        recrawl serve --port 8080
    """
    from crawler.server import server

    maintenance.check_plugins(settings())

    def print_address(address: str) -> None:
        if quiet:
            return
        if as_json:
            print_json({"pages": address})
            sys.stdout.flush()  # whoever reads it does not wait for the end
        else:
            sys.stdout.write(f"Web UI, opens once: {address}\n")
            sys.stdout.flush()
            sys.stderr.write("Ctrl-C ends it\n")

    run_on_database(
        lambda db, interrupts: server.serve(db, host=host, port=port, report=print_address, stop=interrupts.stop),
        connections=server.CONNECTIONS,
        patient=True,
    )


def mcp(as_json: Json = False) -> None:
    """Serve the store to a language model, by the Model Context Protocol on stdin and stdout, until stdin ends.

    Its tools are search, text, changes and freshness; all of them only read. Needs the extra mcp (docs/mcp.md). The
    client starts this command itself: put it where that lists its servers. What it says is JSON anyway.

    Examples:

        recrawl mcp
    """
    if as_json:
        raise BadInput("recrawl mcp speaks JSON-RPC as it is: leave --json out")
    require_extra("mcp", "recrawl mcp")
    from crawler.mcp import serve

    serve()
