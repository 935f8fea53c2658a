"""recrawl up, down, status, ui, serve and mcp: what runs on this machine."""

import sys
from typing import Annotated

from crawler.cli.lazy import local_stack, maintenance
from crawler.cli.options import Json, flag, option
from crawler.cli.output import print_json, print_outcome, remark, say, show, show_facts
from crawler.cli.session import DONE, PROBLEM, settings, with_database
from crawler.errors import BadInput, CrawlerError, StackFailed


def up(as_json: Json = False) -> None:
    """Start Postgres, a Prefect server, a worker and a page of one's own; they stay until `recrawl down`.

    Examples:

        recrawl up
        RECRAWL_HOME=/srv/recrawl recrawl up
    """
    running, pages = local_stack.start_stack(settings(), report=remark)
    if as_json:
        print_json({"ui": running.api.ui_url, "api": running.api.url, "home": str(running.home), "pages": pages})
    else:
        _say_addresses(pages, running.api.ui_url)
        if running.api.auth is not None:
            say("Prefect asks for a word: recrawl ui shows it")


def down(as_json: Json = False) -> None:
    """Stop what `recrawl up` started, and whatever that started in turn.

    Examples:

        recrawl down
    """
    stopped = local_stack.stop_stack(settings(), report=remark)
    said = "The stack is down" if stopped else "There was nothing to stop"
    print_outcome({"stopped": stopped}, said, as_json=as_json)


def _say_addresses(pages: str | None, prefect: str) -> None:
    if pages is not None:
        say(f"Web UI, opens once: {pages}")
    say(f"Prefect: {prefect}")


def ui(as_json: Json = False) -> None:
    """Show where the pages are, and what lets you in: an address for yours, a word for Prefect's. Keep it to yourself.

    Examples:

        recrawl ui
        PREFECT_API_AUTH_STRING=$(recrawl ui --json | jq -r .auth) prefect deployment ls
    """
    pages = local_stack.web_ui_link(settings())
    try:
        api = local_stack.prefect_server(settings())
    except StackFailed:
        if pages is None or as_json:
            raise
        say(f"Web UI, opens once: {pages}")
        remark("They are served by hand; no stack runs: recrawl up")
        return
    if as_json:
        print_json({"ui": api.ui_url, "api": api.url, "auth": api.auth, "pages": pages})
    else:
        _say_addresses(pages, api.ui_url)
        if api.auth is not None:
            say(f"Prefect asks for: {api.auth}")


def status(as_json: Json = False) -> int:
    """Show what runs of the local stack, and which domains wait for what. Exit code 1 where a part does not run.

    Examples:

        recrawl status
        recrawl status --json
    """
    found = local_stack.stack_status(settings())
    if as_json:
        print_json({"running": found.is_running, "parts": found.parts, "waiting": found.waiting})
    else:
        show_facts([("Home", str(settings().home.resolve()))])
        show(
            ["part", "state", "where"],
            [(part.name, "running" if part.is_running else "not running", part.detail) for part in found.parts],
        )
        for line in found.waiting:
            say(line)
    return DONE if found.is_running else PROBLEM


def serve(
    host: Annotated[
        str, option("ADDRESS", "Listen here; what is not this machine's own is open to its network.")
    ] = "127.0.0.1",
    port: Annotated[int | None, option("N", "Else 4280, or any that is free.", min=1, max=65_535)] = None,
    quiet: Annotated[bool, flag("--quiet", "Do not print the address that lets in: recrawl ui does.")] = False,
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

    def told(address: str) -> None:
        if quiet:
            return
        if as_json:
            print_json({"pages": address})
            sys.stdout.flush()  # whoever reads it does not wait for the end
        else:
            sys.stdout.write(f"Web UI, opens once: {address}\n")
            sys.stdout.flush()
            sys.stderr.write("Ctrl-C ends it\n")

    with_database(
        lambda db, interrupts: server.serve(db, host=host, port=port, report=told, stop=interrupts.stop),
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
    try:
        from crawler.mcp import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise CrawlerError(
            "recrawl mcp needs the MCP SDK, which is not installed: make setup-extras EXTRAS=mcp installs it in a"
            " checkout; build an image with --build-arg EXTRAS=mcp"
        ) from error
    serve()
