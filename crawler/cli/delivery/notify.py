"""recrawl notify: their options and their help."""

from typing import Annotated

import typer

from crawler.cli.options import At, Json, Kinds
from crawler.errors import BadInput

app = typer.Typer(
    no_args_is_help=True,
    help="Have changes told by mail, chat, webhook or a program of yours.",
)

Number = Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="Of a subscription: recrawl notify list.")]
Letters = Annotated[
    list[int] | None, typer.Argument(min=1, metavar="[NUMBER]...", help="Of dead letters: recrawl notify dead.")
]
EveryOne = Annotated[bool, typer.Option("--all", help="All of them.")]


@app.command()
def add(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="https://..., an apprise address without secrets, command:PROGRAM, or env:NAME or block:NAME.",
        ),
    ],
    domain: Annotated[str | None, typer.Option(metavar="DOMAIN", help="Changes of one domain only.")] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Of pages like '/docs/', '*.html$' or 're:/20../' only.")
    ] = None,
    kind: Kinds = None,
    match: Annotated[
        str | None, typer.Option(metavar="TEXT", help="When this text appears; re:EXPRESSION for a regular one.")
    ] = None,
    lacks: Annotated[str | None, typer.Option(metavar="TEXT", help="When this text goes.")] = None,
    above: Annotated[float | None, typer.Option(metavar="N", help="When the number rises above this.")] = None,
    below: Annotated[float | None, typer.Option(metavar="N", help="When the number falls below this.")] = None,
    place: Annotated[
        str | None,
        typer.Option(metavar="SELECTOR", help="Of the watched piece: CSS, or XPath behind xpath:; else all of it."),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Together: every 1h or 30m, daily (at 8), daily@07:30, weekly@fri-07:30."),
    ] = None,
    quiet: Annotated[
        str | None, typer.Option(metavar="HOURS", help="Nothing from 22-07 or 21:30-06:45; afterwards all together.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Whose clock counts: Europe/Vienna; else the domain's, or UTC.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(metavar="REFERENCE", help="Sign webhooks with the key at env:NAME or block:NAME."),
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="The receiver is on this machine or in a private network.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have changes told from now on; `recrawl notify test` tries it.

    Mail and chat go by apprise. What has a password or a token in it is not typed: put all of the address into a
    variable or a Prefect secret block, and name that. With --match, --lacks, --above or --below a change is told when
    that becomes true of a page, in its text without what is known to be noise. A webhook is told in JSON, signed as
    Standard Webhooks has it. A program gets the same on its stdin, and is run by your user on this machine alone.

    Examples:

        recrawl notify add env:TELEGRAM --domain docs.example.com
        recrawl notify add 'mailto://mail.example.com?from=me@example.com&to=me@example.com' --kind new,gone
        recrawl notify add https://ci.example.com/hook --secret env:HOOK_KEY --pattern /api/
        recrawl notify add env:MAIL --domain shop.example.com --pattern /kettle --place .price --below 40
        recrawl notify add 'command:/usr/local/bin/rebuild --now' --domain docs.example.com --quiet 22-07
    """
    from crawler.cli.delivery import notify_output

    request = notify_output.SubscriptionRequest(
        target=target,
        domain=domain,
        pattern=pattern,
        kinds=kind,
        conditions={"appears": match, "goes": lacks, "above": above, "below": below},
        place=place,
        digest=digest,
        quiet=quiet,
        zone=zone,
        secret=secret,
        allow_private=allow_private,
    )
    notify_output.add(request, as_json=as_json)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List who is told of what, and how that is going.

    Examples:

        recrawl notify list
        recrawl notify list --json
    """
    from crawler.cli.delivery import notify_output

    notify_output.list_all(as_json=as_json)


@app.command()
def remove(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing any more, not even what waits for it.

    Examples:

        recrawl notify remove 3
    """
    from crawler.cli.delivery import notify_output

    notify_output.remove(number, as_json=as_json)


@app.command()
def pause(number: Number, as_json: Json = False) -> None:
    """Tell a target nothing for a while. What had been found until then waits, and is told when it is resumed.

    Examples:

        recrawl notify pause 3
    """
    from crawler.cli.delivery import notify_run

    notify_run.pause(number, as_json=as_json)


@app.command()
def resume(
    number: Number,
    missed: Annotated[
        bool, typer.Option("--missed", help="And what was found while it was paused, which else is not told.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell a paused target again what is found from now on, beside what waited when it was paused.

    Examples:

        recrawl notify resume 3
        recrawl notify resume 3 --missed
    """
    from crawler.cli.delivery import notify_run

    notify_run.resume(number, missed=missed, as_json=as_json)


@app.command("test")
def send_test(number: Number, as_json: Json = False) -> int:
    """Send a test message now. Where it is taken, what waits for that target is due at once.

    Examples:

        recrawl notify test 3
    """
    from crawler.cli.delivery import notify_run

    return notify_run.send_test_now(number, as_json=as_json)


@app.command()
def run(
    number: Annotated[
        int | None, typer.Argument(min=1, metavar="[NUMBER]", help="Of one subscription; else all of them.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on: tell what is found as it is found, until Ctrl-C.")
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Tell now what is due: what a running stack does every five minutes, and `recrawl crawl` at its end.

    A target that does not take a message is tried again later: after 30 s, then ever more seldom up to once an hour.
    After 16 tries, or three days, the message is a dead letter. Nothing is told twice unless this is killed meanwhile.

    Examples:

        recrawl notify run
        recrawl notify run --follow
    """
    from crawler.cli.delivery import notify_run

    if follow and at is not None:
        raise BadInput("--follow goes by the time that it is: no --at")
    return notify_run.follow(number, as_json=as_json) if follow else notify_run.run(number, at=at, as_json=as_json)


@app.command()
def dead(
    number: Annotated[
        int | None, typer.Argument(min=1, metavar="[NUMBER]", help="Of one subscription; else of all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List messages that were given up (dead letters), and why.

    Examples:

        recrawl notify dead
        recrawl notify dead 3 --json
    """
    from crawler.cli.delivery import notify_output

    notify_output.dead(number, as_json=as_json)


@app.command()
def redeliver(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Have dead letters sent once more, by the next `recrawl notify run` or the running stack.

    What else waits for their receivers is tried then, too, however often they have failed before.

    Examples:

        recrawl notify redeliver 17 18
        recrawl notify redeliver --all
    """
    from crawler.cli.delivery import notify_output

    return notify_output.redeliver(_chosen(letters, every_one=every_one), as_json=as_json)


@app.command()
def discard(letters: Letters = None, every_one: EveryOne = False, as_json: Json = False) -> int:
    """Forget dead letters.

    Examples:

        recrawl notify discard 17
        recrawl notify discard --all
    """
    from crawler.cli.delivery import notify_output

    return notify_output.discard(_chosen(letters, every_one=every_one), as_json=as_json)


def _chosen(letters: list[int] | None, *, every_one: bool) -> list[int] | None:
    if every_one is bool(letters):
        raise BadInput("name the numbers of dead letters, or say --all")
    return None if every_one else letters
