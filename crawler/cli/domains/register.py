"""recrawl domains add, and the registration of what `recrawl crawl` meets for the first time."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from crawler.app.database import Database
from crawler.app.domains import Added, Domain, Fetched, add_domains, describe_domain, missing_secrets, settings_of_new
from crawler.app.settings import DomainSettings, SettingsPatch
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say
from crawler.cli.session import settings, with_database
from crawler.errors import BadInput


def add(
    names: Sequence[str], *, source: str | None, patch: SettingsPatch, offline: bool, at: datetime | None, as_json: bool
) -> int:
    wanted = [*names, *(_lines(source) if source is not None else [])]
    if not wanted:
        raise BadInput("nothing to register: name a URL, or a file with --from")

    results = with_database(
        lambda db, _: add_domains(db, settings(), wanted, patch, offline=offline, at=at or datetime.now(UTC))
    )
    if source is None and len(results) == 1 and results[0].error:
        raise BadInput(results[0].error)
    _print_added(results, as_json=as_json)
    remark_missing_secrets(settings_of_new(patch, settings()))
    return DONE if all(result.is_new for result in results) else PROBLEM


def _lines(source: str) -> list[str]:
    """Return the names in a file, one a line; blank lines and comments are passed over."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadInput(f"{source} cannot be read: {reason}") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def remark_missing_secrets(domain_settings: DomainSettings, *, unless: DomainSettings | None = None) -> None:
    """Say beside the answer which secrets of a domain are not there. unless: settings that named them before."""
    for why in missing_secrets(settings(), domain_settings, unless=unless):
        remark(f"recrawl: {why}")


async def ask_and_register(
    db: Database, name: str, patch: SettingsPatch, *, offline: bool, at: datetime
) -> tuple[Domain, Fetched | None]:
    """Register one domain for its crawl, with a remark on what its root said; return its root's page, if there is one.

    The caller pays for that page: see `add_domains`. Raises BadInput.
    """
    (added,) = await add_domains(db, settings(), [name], patch, offline=offline, keep_answers=True, at=at)
    if added.domain is None:
        raise BadInput(added.error)
    if added.is_new:
        warn_of_no_contact(added.domain.settings)
        remark(f"Registered {added.domain.root}{_also(added.domain)}")
        if added.warning:
            remark(added.warning)
    return added.domain, added.answer


def warn_of_no_contact(domain_settings: DomainSettings) -> None:
    """Whoever runs a public site should be able to reach whoever has it crawled."""
    if not settings().contact and not domain_settings.allow_private:
        remark("recrawl: sites cannot tell who crawls them: set RECRAWL_CONTACT to your URL or address")


def _also(domain: Domain) -> str:
    return f" (also {', '.join(sorted(domain.aliases))})" if domain.aliases else ""


def _print_added(results: Sequence[Added], *, as_json: bool) -> None:
    for result in results:
        if result.error:
            remark(f"recrawl: {result.name}: {result.error}")
        if result.warning:
            remark(result.warning)
    if as_json:
        print_json(
            {
                "registered": [
                    describe_domain(result.new_domain) | ({"warning": result.warning} if result.warning else {})
                    for result in results
                    if result.is_new
                ],
                "failed": [{"name": result.name, "error": result.error} for result in results if result.error],
            }
        )
        return
    for result in results:
        if result.is_new:
            say(f"Registered {result.new_domain.root}{_also(result.new_domain)}")
    if any(result.is_new and not result.warning for result in results):
        remark("Next: recrawl crawl, or a running stack begins with it within five minutes")
