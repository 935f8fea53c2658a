"""recrawl tags: tags of domains, and the settings that the domains of a tag inherit."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.app.settings import SettingsPatch
from crawler.cli.lazy import domain_settings, tags
from crawler.cli.options import DomainNames, Json, argument, flag, option
from crawler.cli.output import print_json, print_listing, print_outcome, say, show_facts
from crawler.cli.session import run_on_database
from crawler.cli.settings_options import EMPTY_PATCH, add_settings_options
from crawler.errors import BadInput
from crawler.format.values import format_count

TagName = Annotated[str, argument("TAG", "A tag, such as news.")]

app = typer.Typer(
    no_args_is_help=True, help="Tag domains, to select them together and to share settings. A domain has any number."
)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the tags with their settings and the number of their domains.

    Examples:

        recrawl tags list
    """
    listed = run_on_database(lambda db, _: tags.list_tags(db))
    rows = (
        {
            "tag": each.tag.name,
            "domains": str(len(each.domains)),
            "settings": "; ".join(domain_settings.format_values(each.tag.values)),
        }
        for each in listed
    )
    documents = {"tags": [tags.describe_tag(each) for each in listed]}
    empty = "There are no tags: recrawl tags add TAG DOMAIN"
    print_listing(documents, rows, right=("domains",), empty=empty, as_json=as_json)


@app.command()
def show(tag: TagName, as_json: Json = False) -> None:
    """Show the settings and the domains of a tag.

    Examples:

        recrawl tags show news
    """
    found = run_on_database(lambda db, _: tags.get_tag(db, tag))
    if as_json:
        print_json(tags.describe_tag(found))
        return
    settings = "\n".join(domain_settings.format_values(found.tag.values))
    show_facts([("Tag", found.tag.name), ("Settings", settings), ("Domains", "\n".join(found.domains))])


@app.command()
def add(tag: TagName, domain: DomainNames, as_json: Json = False) -> None:
    """Tag domains. A tag that does not exist is created.

    The domains inherit the settings of the tag, except those that they have themselves. No two tags of a domain may set
    a setting differently.

    Examples:

        recrawl tags add news news.example.com press.example.com
    """
    changed = run_on_database(lambda db, _: tags.change_tags(db, domain, add=[tag], at=datetime.now(UTC)))
    _print_domains(f"tagged {tag}", tag, [each.authority for each in changed], as_json=as_json)


@app.command()
def remove(tag: TagName, domain: DomainNames, as_json: Json = False) -> None:
    """Remove a tag from domains.

    Examples:

        recrawl tags remove news press.example.com
    """
    changed = run_on_database(lambda db, _: tags.change_tags(db, domain, remove=[tag], at=datetime.now(UTC)))
    _print_domains(f"no longer tagged {tag}", tag, [each.authority for each in changed], as_json=as_json)


def _print_domains(what: str, tag: str, names: Sequence[str], *, as_json: bool) -> None:
    lines = [f"{name} is {what}" for name in names]
    print_outcome({"tag": tag, "domains": list(names)}, "\n".join(lines), as_json=as_json)


@app.command("set")
@add_settings_options(of_tag=True)
def change(
    tag: TagName,
    unset: Annotated[list[str] | None, option("NAME", "Unset a setting, such as budget. Can be repeated.")] = None,
    patch: SettingsPatch = EMPTY_PATCH,
    as_json: Json = False,
) -> None:
    """Change the settings of a tag, which its domains inherit. A tag that does not exist is created.

    A value that a domain has itself takes precedence. The change takes effect as if each domain had been changed with
    `recrawl domains set`; lists replace the existing ones.

    Examples:

        recrawl tags set news --max-age 1d --budget 2000
        recrawl tags set news --unset budget
    """
    if not patch.values and not unset:
        raise BadInput("nothing to change: name a setting (recrawl tags set --help)")
    found, changed = run_on_database(
        lambda db, _: tags.change_tag_settings(db, tag, patch, unset=unset or (), at=datetime.now(UTC))
    )
    lines = domain_settings.format_values(found.tag.values) or ["no settings"]
    message = f"{tag}: {'; '.join(lines)}. It applies to {format_count(len(changed), 'domain')}"
    print_outcome(tags.describe_tag(found), message, as_json=as_json)


@app.command()
def delete(
    tag: TagName,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.", short="-y")] = False,
    as_json: Json = False,
) -> None:
    """Delete a tag. Its domains stay, without its settings.

    Examples:

        recrawl tags delete news --yes
    """
    found = run_on_database(lambda db, _: tags.get_tag(db, tag))
    if not yes and (found.domains or found.tag.values):
        of_domains = format_count(len(found.domains), "domain")
        typer.confirm(f"Delete {tag}, and its settings from {of_domains}?", abort=True, err=True)
    changed = run_on_database(lambda db, _: tags.remove_tag(db, tag, at=datetime.now(UTC)))
    if as_json:
        print_json({"deleted": tag, "domains": [each.authority for each in changed]})
        return
    say(f"{tag} is deleted")
