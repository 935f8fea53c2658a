"""recrawl serve: its options and its help."""

import sys
from typing import Annotated

from crawler.cli.lazy import maintenance
from crawler.cli.options import Json, flag, option
from crawler.cli.output import print_json
from crawler.cli.session import settings, with_database


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

    used = settings()
    maintenance.check_plugins(used)

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
        lambda db, interrupts: server.serve(db, used, host=host, port=port, report=told, stop=interrupts.stop),
        connections=server.CONNECTIONS,
        patient=True,
    )
