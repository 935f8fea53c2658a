"""The commands, their options and their help. What they do stands elsewhere, and is imported when it is asked for."""

import logging
from typing import Annotated

import typer

from crawler import __version__
from crawler.cli import db_app, domains_app, lab_app, lab_time_app, rules_app, values
from crawler.cli.options import At, DomainName, Json, Offline, Top
from crawler.cli.settings_options import NOTHING, SettingsPatch, with_settings

LOOK, RUN = "Look", "Run"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _tell_version(asked: bool) -> None:  # noqa: FBT001  typer calls it so
    if asked:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell on stderr what happens, event by event.")
    ] = False,
    version: Annotated[  # noqa: ARG001  answered by its callback, before any command
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version, and stop.")
    ] = False,
) -> None:
    """Keep a copy of chosen web domains fresh in Postgres, with as few requests as it can.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl report
        recrawl changes --since 7d
        recrawl up

    Without RECRAWL_DATABASE_URL everything is kept in the folder RECRAWL_HOME (.recrawl), in a Postgres of its own.
    Exit codes: 0 done, 1 a problem was found, 2 it cannot be asked for like this.
    """
    from crawler.cli import logs

    logs.set_up(level=logging.INFO if verbose else logging.WARNING)


@app.command()
@with_settings(of_crawl=True)
def crawl(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="URL|DOMAIN", help="What to crawl; what is not registered will be.")
    ] = None,
    pages: Annotated[int | None, typer.Option(min=1, metavar="N", help="Look at so many pages, at most.")] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Only what is due: of the domains named, or of all that are registered.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be fetched now and what that costs; touch nothing.")
    ] = False,
    shift_time: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Finish after this long: 90s, 10m, 2h.")
    ] = None,
    offline: Offline = False,
    patch: SettingsPatch = NOTHING,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Crawl domains in this process, until nothing is due: pages never seen, and those worth looking at again.

    A URL that belongs to no registered domain registers one, with the settings given here. A URL with a path is
    looked at whether it is due or not. The first Ctrl-C finishes what is under way, the second ends at once.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl crawl docs.example.com --pages 100
        recrawl crawl --due
        recrawl crawl docs.example.com --dry-run
        recrawl crawl http://127.0.0.1:8000/ --allow-private --json
    """
    from crawler.cli import crawling

    order = crawling.CrawlRequest(
        names=tuple(names or ()),
        pages=pages,
        due=due,
        patch=patch,
        offline=offline,
        shift_time=values.span(shift_time) if shift_time else None,
        at=at,
    )
    if dry_run:
        from crawler.cli import previewing

        return previewing.preview(order, as_json=as_json)
    return crawling.crawl(order, as_json=as_json)


@app.command()
def refresh(
    domain: DomainName,
    prefix: Annotated[
        str | None, typer.Option(metavar="URL", help="Only pages whose URL begins so; a path will do.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Make every page of a domain due now. A running stack begins at once, else the next crawl does.

    Examples:

        recrawl refresh docs.example.com
        recrawl refresh docs.example.com --prefix /guide/
    """
    from crawler.cli import refreshing

    return refreshing.refresh(domain, prefix=prefix, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def pages(domain: DomainName, top: Top = 20, at: At = None, as_json: Json = False) -> int:
    """List a domain's pages, the most important first.

    Examples:

        recrawl pages docs.example.com
        recrawl pages docs.example.com --top 1000 --json
    """
    from crawler.cli import reading

    return reading.pages(domain, top=top, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def report(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")] = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say how fresh the copy is, how true that is, and what keeping it so costs.

    How true: as far as `recrawl audit` has found out, which the running stack asks for every day.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
    """
    from crawler.cli import reading

    return reading.report(domain, days=days, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def plan(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="What this one may expect; else plan.")] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="DOMAIN", help="Plan for one domain as if there were no other, such as one of another time."
        ),
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Set what a request must be worth, in all domains; or say what more and fewer requests would buy in one.

    With a DOMAIN nothing is changed: freshness and age are shown for a tenth to ten times today's requests.

    Examples:

        recrawl plan
        recrawl plan docs.example.com
        recrawl plan docs.example.com --json
        recrawl plan --only docs.example.com --at 2027-01-31
    """
    from crawler.cli import planning

    if domain is not None and only is not None:
        raise typer.BadParameter("give a domain to look at or --only to plan for one, not both")
    if domain is None:
        return planning.plan(only=only, at=at, as_json=as_json)
    return planning.plan_one(domain, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def audit(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Hold what is reported to what looks found, and draw pages by chance for the next crawl to look at.

    For once a day where no stack runs that does it; all through a UTC day it draws the same pages. Exit code 1 where
    the freshness that is reported, or what was expected of looks, is off by more than chance explains.

    Examples:

        recrawl audit
        recrawl audit docs.example.com
        recrawl audit --json
    """
    from crawler.cli import auditing

    return auditing.audit(domain, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def changes(
    since: Annotated[
        str | None, typer.Option(metavar="CURSOR|SPAN", help="After this cursor, or in the last 30m, 12h, 7d.")
    ] = None,
    domain: Annotated[str | None, typer.Option(metavar="DOMAIN", help="Of one domain only.")] = None,
    top: Top = 1000,
    diff: Annotated[bool, typer.Option("--diff", help="With the pieces that went and came, the first 50.")] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """List what changed, in the order in which it was found, with the cursor from which to go on.

    Of each change it is told what of the page it was: text, link, image, title or meta. What a site changed on all its
    pages alike is one change of the kind frame, and none of any page.

    Examples:

        recrawl changes --since 7d
        recrawl changes --since 7d --diff
        recrawl changes --since 4711 --json
    """
    from crawler.cli import reading

    after = values.since(since) if since else 0
    return reading.changes(since=after, domain=domain, top=top, diff=diff, at=at, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def duplicates(
    name: Annotated[
        str | None, typer.Argument(metavar="DOMAIN|URL", help="One domain, or one page of it; else all domains.")
    ] = None,
    bits: Annotated[
        int, typer.Option(min=0, max=3, metavar="N", help="In how many of 64 bits fingerprints may differ; 0: in none.")
    ] = 3,
    most: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="How many groups; with a URL, how many pages.")
    ] = 20,
    as_json: Json = False,
) -> int:
    """List pages whose main texts are nearly the same, in groups around one of them, the largest groups first.

    With a URL that has a path: the pages that are nearly the same as this one. Each page is kept by itself; those whose
    main texts are the same, at three looks and more, share one schedule ("shared"). A page with less than 100 bytes of
    main text is not compared.

    Examples:

        recrawl duplicates docs.example.com
        recrawl duplicates docs.example.com --bits 0 --most 5
        recrawl duplicates https://docs.example.com/guide/install.html
        recrawl duplicates --json
    """
    from crawler.cli import duplicates_report

    return duplicates_report.duplicates(name, bits=bits, most=most, as_json=as_json)


@app.command(rich_help_panel=LOOK)
def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, tracked or not.")],
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say everything about one URL: what it is worth, when it is due and why; or why it is not crawled.

    Examples:

        recrawl explain https://docs.example.com/guide/install.html
    """
    from crawler.cli import explaining

    return explaining.explain(url, at=at, as_json=as_json)


@app.command("try", rich_help_panel=LOOK)
def try_url(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of a registered domain, known or not.")],
    again: Annotated[
        bool, typer.Option("--again", help="Look three times, one delay apart, and show what that teaches.")
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Look at one page, and show what of it would be compared, what is masked, and why; nothing is recorded.

    Of a known page: what differs from its last version, and which of it is news. It is a look like any other: as
    robots.txt and the domain's scope, delay and budget allow. Exit code 1 where the page could not be had.

    Examples:

        recrawl try https://docs.example.com/guide/install.html
        recrawl try https://docs.example.com/ --again
        recrawl try https://docs.example.com/ --json
    """
    from crawler.cli import trying

    return trying.try_url(url, again=again, at=at, as_json=as_json)


@app.command(rich_help_panel=RUN)
def up(as_json: Json = False) -> int:
    """Start Postgres, a Prefect server with its pages, and a worker; they stay until `recrawl down`.

    Examples:

        recrawl up
        RECRAWL_HOME=/srv/recrawl recrawl up
    """
    from crawler.cli import stacking

    return stacking.up(as_json=as_json)


@app.command(rich_help_panel=RUN)
def down(as_json: Json = False) -> int:
    """Stop what `recrawl up` started, and whatever that started in turn.

    Examples:

        recrawl down
    """
    from crawler.cli import stacking

    return stacking.down(as_json=as_json)


@app.command(rich_help_panel=RUN)
def status(as_json: Json = False) -> int:
    """Show what runs of the local stack. Exit code 1 where something of it does not.

    Examples:

        recrawl status
        recrawl status --json
    """
    from crawler.cli import stacking

    return stacking.status(as_json=as_json)


@app.command(rich_help_panel=RUN)
def demo(
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="Virtual days that pass.")] = 30,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running, to look at.")] = False,
    as_json: Json = False,
) -> int:
    """Let a small site live for a month on this machine, crawl it day by day, and compare with the truth.

    Examples:

        recrawl demo
        recrawl demo --days 7 --keep
    """
    from crawler.cli import touring

    return touring.demo(days=days, keep=keep, as_json=as_json)


app.add_typer(domains_app.app, name="domains")
app.add_typer(rules_app.app, name="rules")
app.add_typer(db_app.app, name="db", rich_help_panel=RUN)
lab_app.app.add_typer(lab_time_app.app)
app.add_typer(lab_app.app, name="lab", rich_help_panel=LOOK)
