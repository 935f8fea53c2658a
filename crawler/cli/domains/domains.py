"""recrawl domains: their options and their help."""

from typing import Annotated

import typer

from crawler.app.settings import SettingsPatch
from crawler.cli.options import At, DomainName, DomainNames, Json, Offline
from crawler.cli.settings_options import NOTHING, with_settings

app = typer.Typer(no_args_is_help=True, help="Register domains, change them, and see how they stand.")


@app.command()
@with_settings()
def add(
    domain: Annotated[list[str] | None, typer.Argument(metavar="URL|NAME", help="What to register.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Register one per line of a file, or of - (stdin).")
    ] = None,
    offline: Offline = False,
    patch: SettingsPatch = NOTHING,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Register domains.

    The root of each is asked once: where it leads within the same registrable domain (to www, to https) is what
    gets registered, and the other names become aliases. A URL with a path adds that page as a seed.

    Examples:

        recrawl domains add https://docs.example.com
        recrawl domains add example.com --budget 5000 --exclude '*?*print='
        recrawl domains add example.com --fresh 95% --bytes 2GB
        recrawl domains add http://127.0.0.1:8000 --allow-private
        recrawl domains add --from names.txt --offline
    """
    from crawler.cli.domains import register

    return register.add(domain or [], source=source, patch=patch, offline=offline, at=at, as_json=as_json)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the domains with their numbers of pages.

    Examples:

        recrawl domains list
        recrawl domains list --json
    """
    from crawler.cli.domains import domains_output

    domains_output.list_all(as_json=as_json)


@app.command()
def show(domain: DomainName, at: At = None, as_json: Json = False) -> None:
    """Show one domain: its settings, and why it can or cannot be crawled now.

    Examples:

        recrawl domains show docs.example.com
    """
    from crawler.cli.domains import domains_output

    domains_output.show_one(domain, at=at, as_json=as_json)


@app.command("set")
@with_settings()
def change(
    domain: DomainName,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Back to the default: budget, delay, include, ...; may be repeated."),
    ] = None,
    patch: SettingsPatch = NOTHING,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Change a domain's settings; what is not named stays.

    Seeds are added to the ones there are; patterns take the place of the ones there were, and a target that of the
    other kind. Where the scope becomes another, every page is read again, since its links were sorted out by the old
    one.

    Examples:

        recrawl domains set docs.example.com --delay 0.5 --budget 20000
        recrawl domains set docs.example.com --exclude '/archive/' --exclude '*.pdf$'
        recrawl domains set docs.example.com --unset budget --unset exclude
        recrawl domains set docs.example.com --no-older-than 3d --bytes 500MB
        recrawl domains set docs.example.com --favour /guide/ --favour-by 8
        recrawl domains set docs.example.com --order mixed --url-share 0.4
    """
    from crawler.cli.domains import domains_output

    domains_output.change(domain, patch=patch, unset=unset or [], at=at, as_json=as_json)


@app.command("reset-clock")
def reset_clock(domain: DomainNames, as_json: Json = False) -> None:
    """Undo a clock that was ahead: visits that are later than now count as made now.

    A domain is not fetched before its last visit. After one crawl with a wrong clock, or with `--at` in the future, it
    would wait until that time. What was recorded stays, and pages are due as long after their visits as they were.

    Examples:

        recrawl domains reset-clock docs.example.com
    """
    from crawler.cli.domains import domains_output

    domains_output.reset_clock(domain, as_json=as_json)


@app.command()
def pause(domain: DomainNames, as_json: Json = False) -> None:
    """Leave domains alone until they are resumed; what is under way ends by itself.

    Examples:

        recrawl domains pause docs.example.com
    """
    from crawler.cli.domains import domains_output

    domains_output.set_paused(domain, paused=True, as_json=as_json)


@app.command()
def resume(domain: DomainNames, as_json: Json = False) -> None:
    """Crawl paused domains again.

    Examples:

        recrawl domains resume docs.example.com
    """
    from crawler.cli.domains import domains_output

    domains_output.set_paused(domain, paused=False, as_json=as_json)


@app.command()
def remove(
    domain: DomainNames,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Forget domains and everything about them: pages, versions, changes.

    Examples:

        recrawl domains remove docs.example.com
        recrawl domains remove docs.example.com --yes
    """
    from crawler.cli.domains import domains_output

    domains_output.remove(domain, yes=yes, as_json=as_json)
