"""recrawl domains: register, list, change, pause and remove domains."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from crawler.app.settings import SettingsPatch
from crawler.cli.lazy import domain_settings, domains, imports, register, registration
from crawler.cli.lazy import status as app_status
from crawler.cli.options import NO_DOMAIN, At, DomainName, DomainNames, Json, Offline, Tag, Tags, argument, flag, option
from crawler.cli.output import print_json, print_listing, print_outcome, remark, say, show_facts
from crawler.cli.running.prune import format_storage
from crawler.cli.session import DONE, PROBLEM, Interrupts, run_on_database, settings
from crawler.cli.settings_options import EMPTY_PATCH, add_settings_options
from crawler.errors import BadInput
from crawler.format.values import format_bytes, format_count, format_instant
from crawler.json_lines import pick_fields

PAGE_COUNTS = ("unfetched", "fetched", "gone", "dead_links", "moved", "excluded", "withheld")
NUMBERS = ("importance", "unfetched", "fetched", "gone", "dead links")

app = typer.Typer(no_args_is_help=True, help="Register, configure and inspect domains.")


@app.command()
@add_settings_options()
def add(
    domain: Annotated[list[str] | None, argument("URL|DOMAIN", "The domains to register.")] = None,
    source: Annotated[
        str | None,
        option(
            "FILE",
            "Read domains and URLs from a list (one per line), an OPML file or a sitemap; - reads stdin.",
            "--from",
        ),
    ] = None,
    tag: Tags = None,
    offline: Offline = False,
    patch: SettingsPatch = EMPTY_PATCH,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Register domains.

    The root page of each domain is requested once. If it redirects within the same registrable domain (to www or
    https), the redirect's target is registered, and the original name becomes an alias. A URL with a path adds that
    page as a seed; in a registered domain, the page is fetched next. A tag is also given to registered domains.

    Examples:

        recrawl domains add https://docs.example.com
        recrawl domains add example.com --budget 5000 --exclude '*?*print='
        recrawl domains add example.com --target-freshness 95% --budget-bytes 2GB
        recrawl domains add http://127.0.0.1:8000 --allow-private
        recrawl domains add --from names.txt --offline
        recrawl domains add --from feeds.opml --tag news
    """
    names = [*(domain or []), *(_read_names(source) if source is not None else [])]
    if not names:
        raise BadInput("nothing to register: name a URL, or a file with --from")
    now = at or datetime.now(UTC)
    result = run_on_database(
        lambda db, _: imports.import_names(db, names, patch, tags=tag or (), offline=offline, at=now)
    )
    if source is None and len(names) == 1 and result.failed:
        raise BadInput(next(iter(result.failed.values())))
    _print_result(result, as_json=as_json)
    register.remark_missing_secrets(domains.make_domain_settings(patch, settings()))
    return PROBLEM if result.failed else DONE


def _read_names(source: str) -> list[str]:
    """Return the domains and URLs in a file. Raises BadInput."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"{source} cannot be read: {reason}") from error
    return imports.parse_import(text)


def _print_result(result: "imports.ImportResult", *, as_json: bool) -> None:
    for name, error in result.failed.items():
        remark(f"recrawl: {name}: {error}")
    for warning in result.warnings:
        remark(warning)
    if as_json:
        failed = [{"name": name, "error": error} for name, error in result.failed.items()]
        registered = [domains.describe_domain(domain) for domain in result.registered]
        tagged = [domain.authority for domain in result.tagged]
        document = {"registered": registered, "tagged": tagged, "pages": result.pages, "failed": failed}
        print_json(document | {"warnings": result.warnings})
        return
    for domain in result.tagged:
        say(f"{domain.authority} is tagged")
    for domain in result.registered:
        say(f"Registered {domain.root}{register.format_aliases(domain)}")
    if result.pages:
        say(f"{format_count(result.pages, 'page')} of registered domains will be fetched next")
    if result.pages or len(result.registered) > len(result.warnings):
        remark("Next: recrawl crawl --due. A running local stack starts crawling within five minutes")


@app.command("list")
def list_all(tag: Tag = None, as_json: Json = False) -> None:
    """List the domains with their page counts.

    Examples:

        recrawl domains list
        recrawl domains list --tag news
        recrawl domains list --json
    """
    listed = run_on_database(lambda db, _: domains.list_domains(db, tag=tag))
    rows = (
        {
            "domain": each.domain.authority,
            "state": domains.get_domain_state(each, at=datetime.now(UTC)),
            "importance": f"{each.importance:.2f}",
            **{name: str(getattr(each, name.replace(" ", "_"))) for name in NUMBERS[1:]},
            "last visit": format_instant(each.last_visit_at),
            "next": format_instant(each.wake_at) if each.wake_at else "-",
            "tags": ", ".join(tag.name for tag in each.domain.tags),
        }
        for each in listed
    )
    documents = []
    for each in listed:
        about = pick_fields(each, "wake_at", "last_visit_at", "holder", "importance")
        documents.append(domains.describe_domain(each.domain) | {"pages": pick_fields(each, *PAGE_COUNTS)} | about)
    print_listing({"domains": documents}, rows, right=NUMBERS, empty=NO_DOMAIN, as_json=as_json)


@app.command()
def show(domain: DomainName, at: At = None, as_json: Json = False) -> None:
    """Show the settings and state of a domain, and whether it can be crawled now.

    Examples:

        recrawl domains show docs.example.com
    """
    instant = at or datetime.now(UTC)
    details = run_on_database(lambda db, _: domains.inspect_domain(db, domain, at=at))
    shown, status, storage = details.domain, details.status, details.storage
    if as_json:
        print_json(domains.describe_domain(shown) | {"status": status, "wait": details.wait, "storage": storage})
        return
    show_facts(
        [
            ("Domain", shown.authority),
            ("Root", shown.root),
            ("Aliases", ", ".join(sorted(shown.aliases))),
            ("Tags", ", ".join(tag.name for tag in shown.tags)),
            ("Registered", format_instant(shown.registered_at)),
            *domain_settings.format_sourced_settings(shown),
            ("Rules", "\n".join(map(domain_settings.format_rule, shown.settings.rules))),
            ("Unusable settings", "\n".join(shown.settings.problems)),
            ("Hours now", domain_settings.format_opening(shown, at=instant)),
            ("Budget left", str(status.budget_left) if status.budget_left is not None else ""),
            ("Bytes left", format_bytes(max(status.bytes_left, 0)) if status.bytes_left is not None else ""),
            ("Storage", format_storage(storage) if storage.stored_bytes else ""),
            ("Last visit", format_instant(status.last_visit_at)),
            ("Now", app_status.format_wait(details.wait, shown, now=instant) or "can be crawled"),
        ]
    )


@app.command("set")
@add_settings_options()
def change(
    domain: DomainName,
    unset: Annotated[
        list[str] | None, option("NAME", "Unset a setting, such as budget or include. Can be repeated.")
    ] = None,
    patch: SettingsPatch = EMPTY_PATCH,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Change the settings of a domain. Settings that are not given stay unchanged.

    A value given here takes precedence over those of the domain's tags; --unset falls back to them, or to the default.
    New seeds are added to the existing ones. The other lists (--include, --exclude, --boost, --header) are replaced.
    --target-freshness and --max-age replace each other. A setting that can change the content or links of pages
    (--include, --exclude, --max-depth, --header, --auth, --login, --cookies, --language, --render) makes recrawl fetch
    all pages again.

    Examples:

        recrawl domains set docs.example.com --delay 0.5 --budget 20000
        recrawl domains set docs.example.com --exclude '/archive/' --exclude '*.pdf$'
        recrawl domains set docs.example.com --unset budget --unset exclude
        recrawl domains set docs.example.com --max-age 3d --budget-bytes 500MB
        recrawl domains set docs.example.com --boost /guide/ --boost-factor 8
        recrawl domains set docs.example.com --order mixed --url-weight 0.4
    """
    if not patch.values and not unset:
        raise BadInput("nothing to change: name a setting (recrawl domains set --help)")

    async def work(
        db: "domains.AppDatabase", _: Interrupts
    ) -> "tuple[domains.Domain, domains.Domain, domains.SizeEstimate | None]":
        before = await registration.get_domain(db, domain)
        await registration.require_after_last_visit(db, [before] if at is not None else [], at)
        now = at or datetime.now(UTC)
        after = await domains.change_settings(db, before, patch, unset=unset or (), at=now)
        return before, after, await domains.estimate_storage(db, before, after)

    before, after, storage = run_on_database(work)
    if as_json:
        print_json(domains.describe_domain(after))
        return
    register.remark_missing_secrets(after.settings, unless=before.settings)
    changed_lines = domain_settings.format_changes(before, after)
    say(f"{after.authority} is changed" if changed_lines else f"{after.authority}: nothing changed")
    for line in changed_lines:
        say(f"  {line}")
    if storage is not None and storage.stored_bytes:
        say(f"Storage: {format_storage(storage)}")


@app.command("reset-clock")
def reset_clock(domain: DomainNames, as_json: Json = False) -> None:
    """Repair a domain that was crawled with a clock in the future.

    A domain is never crawled before the time of its last visit. After a crawl with a wrong clock, or with `--at` in the
    future, that time is in the future, and the domain waits for it. This command sets the time of such visits to now.
    The intervals until the next visits stay the same.

    Examples:

        recrawl domains reset-clock docs.example.com
    """
    last_visits = run_on_database(lambda db, _: domains.reset_clocks(db, domain, at=datetime.now(UTC)))
    lines = [
        f"{each.authority} has no visit in the future: nothing changed"
        if last_visit_at is None
        else f"{each.authority}: visits in the future, up to {format_instant(last_visit_at)}, were set to now"
        for each, last_visit_at in last_visits
    ]
    print_outcome({"reset": {each.authority: at for each, at in last_visits}}, "\n".join(lines), as_json=as_json)


@app.command()
def pause(domain: DomainNames, as_json: Json = False) -> None:
    """Pause domains until you resume them. Requests in progress are finished.

    Examples:

        recrawl domains pause docs.example.com
    """
    _set_paused(domain, paused=True, as_json=as_json)


@app.command()
def resume(domain: DomainNames, as_json: Json = False) -> None:
    """Resume paused domains.

    Examples:

        recrawl domains resume docs.example.com
    """
    _set_paused(domain, paused=False, as_json=as_json)


@app.command()
def remove(
    domain: DomainNames,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.", short="-y")] = False,
    as_json: Json = False,
) -> None:
    """Delete domains with all their data: pages, versions and changes.

    Examples:

        recrawl domains remove docs.example.com
        recrawl domains remove docs.example.com --yes
    """
    if not yes and not sys.stdin.isatty():
        raise BadInput("this deletes all data of the domains: confirm with --yes")
    if not yes:
        names = ", ".join(map(registration.parse_authority, domain))
        typer.confirm(f"Delete {names} with all data?", abort=True, err=True)
    removed = [each.authority for each in run_on_database(lambda db, _: domains.remove_domains(db, domain))]
    print_outcome({"removed": removed}, "\n".join(f"{name} is removed" for name in removed), as_json=as_json)


def _set_paused(names: Sequence[str], *, paused: bool, as_json: bool) -> None:
    changed = run_on_database(lambda db, _: domains.set_paused(db, names, paused=paused))
    lines = [f"{each.authority} is {'paused' if paused else 'active'}" for each in changed]
    document = {"paused": paused, "domains": [each.authority for each in changed]}
    print_outcome(document, "\n".join(lines), as_json=as_json)
