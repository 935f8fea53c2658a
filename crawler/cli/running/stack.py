"""recrawl up, down, status, ui, serve and mcp: the local stack and servers on this machine."""

import sys
from typing import Annotated

from crawler.cli.lazy import local_stack, maintenance
from crawler.cli.options import Json, flag, option
from crawler.cli.output import print_json, print_outcome, remark, say, show_facts, show_table
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import StackFailed
from crawler.extras import require_extra


def up(as_json: Json = False) -> None:
    """Start the local stack: Postgres, a Prefect server, a worker and the web UI.

    The stack crawls what is due every five minutes until `recrawl down`. `recrawl ui` prints its addresses.

    Examples:

        recrawl up
        RECRAWL_HOME=/srv/recrawl recrawl up
    """
    running, web_ui_url = local_stack.start_local_stack(settings(), report=remark)
    api, home = running.api, str(running.home)
    if as_json:
        print_json({"web_ui": web_ui_url, "prefect_ui": api.ui_url, "prefect_api": api.url, "home": home})
    else:
        _say_addresses(web_ui_url, api.ui_url)
        if api.auth is not None:
            say("Prefect asks for an auth string: recrawl ui shows it")


def down(as_json: Json = False) -> None:
    """Stop the local stack, with all its processes.

    Examples:

        recrawl down
    """
    stopped = local_stack.stop_stack(settings(), report=remark)
    message = "The local stack is stopped" if stopped else "The local stack was not running"
    print_outcome({"stopped": stopped}, message, as_json=as_json)


def _say_addresses(web_ui_url: str | None, prefect_url: str) -> None:
    if web_ui_url is not None:
        say(f"Web UI (one-time login link): {web_ui_url}")
    say(f"Prefect: {prefect_url}")


def ui(as_json: Json = False) -> None:
    """Print a login link to the web UI, and the URL and auth string of Prefect.

    Keep the output secret. The login link can be used once.

    Examples:

        recrawl ui
        export PREFECT_API_URL=$(recrawl ui --json | jq -r .prefect_api)
        export PREFECT_API_AUTH_STRING=$(recrawl ui --json | jq -r .prefect_auth)
        prefect deployment ls
    """
    web_ui_url = local_stack.make_web_ui_link(settings())
    try:
        api = local_stack.find_prefect_server(settings())
    except StackFailed:
        if web_ui_url is None or as_json:
            raise
        say(f"Web UI (one-time login link): {web_ui_url}")
        remark("Prefect is not running, only recrawl serve. To start the local stack: recrawl up")
        return
    if as_json:
        print_json({"web_ui": web_ui_url, "prefect_ui": api.ui_url, "prefect_api": api.url, "prefect_auth": api.auth})
    else:
        _say_addresses(web_ui_url, api.ui_url)
        if api.auth is not None:
            say(f"Prefect auth string: {api.auth}")


def status(as_json: Json = False) -> int:
    """Show the state of the local stack, and which domains wait and why.

    Exit code 1 if a part of the local stack is not running.

    Examples:

        recrawl status
        recrawl status --json
    """
    stack_status = local_stack.read_stack_status(settings())
    if as_json:
        print_json(
            {
                "running": stack_status.is_running,
                "parts": stack_status.parts,
                "waiting": stack_status.waiting,
                "reader": stack_status.reader,
            }
        )
    else:
        show_facts([("Home", str(settings().home.resolve())), ("Page reader", stack_status.reader)])
        states = {True: "running", False: "not running"}
        rows = [(part.name, states[part.is_running], part.detail) for part in stack_status.parts]
        show_table(["part", "state", "where"], rows)
        for line in stack_status.waiting:
            say(line)
    return DONE if stack_status.is_running else PROBLEM


def serve(
    host: Annotated[
        str,
        option(
            "ADDRESS", "The IP address to listen on. With an address other than loopback, other machines can connect."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        option("N", "The port to listen on. Default: 4280, or a free one if it is in use.", min=1, max=65_535),
    ] = None,
    quiet: Annotated[bool, flag("--quiet", "Do not print the login link; recrawl ui prints it on demand.")] = False,
    as_json: Json = False,
) -> None:
    """Serve the web UI and the HTTP API until Ctrl-C.

    The web UI shows changes, freshness and problems. The command prints a login link, which can be used once; the
    browser stays logged in for a month. Keep the link secret.

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
            print_json({"web_ui": address})
        else:
            sys.stdout.write(f"Web UI (one-time login link): {address}\n")
            sys.stderr.write("Press Ctrl-C to stop\n")
        sys.stdout.flush()  # the command runs on

    run_on_database(
        lambda db, interrupts: server.serve(db, host=host, port=port, report=print_address, stop=interrupts.stop),
        connections=server.CONNECTIONS,
        patient=True,
    )


def mcp() -> None:
    """Serve the crawled pages to a language model over the Model Context Protocol, on stdin and stdout.

    The tools search, text, changes and freshness are read-only. The MCP client starts this command, so add it to the
    client's list of servers. It runs until stdin is closed. Requires the extra `mcp` (docs/mcp.md).

    Examples:

        recrawl mcp
    """
    require_extra("mcp", "recrawl mcp")
    from crawler.mcp import serve

    serve()
