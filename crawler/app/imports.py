"""Import of many domains and pages, from a list, an OPML document or a sitemap."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawler.app.action_log import compare_settings, describe_action, format_names, recorded
from crawler.app.database import AppDatabase
from crawler.app.domains import AddResult, add_domains, make_domain_settings
from crawler.app.registration import make_scope, parse_typed_url
from crawler.app.settings import SettingsPatch
from crawler.app.tags import change_tags
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Url, get_authority, get_path_and_query
from crawler.core.page.lists.url_list import read_list_text
from crawler.errors import BadInput
from crawler.format.values import format_count
from crawler.store import domains

MAX_NAMES = 10_000  # of one import
DOMAINS_PER_STEP = 16  # whose roots are fetched at once
NOT_REACHED = "it was not imported, because there was no time left: import it again"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import, with the names as they were given.

    registered: the new domains.  pages: the number of pages that were added to domains.
    failed: the names that were not imported, with the reason.  warnings: what was wrong with roots and tags.
    tagged: the registered domains that got the tags of the import.
    """

    registered: list[Domain]
    pages: int
    failed: dict[str, str]
    warnings: list[str]
    tagged: list[Domain] = field(default_factory=list)


def parse_import(text: str) -> list[str]:
    """Return the domains and URLs in a text: an OPML document, a sitemap, or a list with one of them per line.

    In a list, blank lines and comments after # at the start of a line are ignored. Raises BadInput.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        listed = read_list_text(iter([text]), url=Url("http://localhost/"))
        if listed.finding or not listed.entries:
            reason = listed.finding.replace("_", " ") or "it lists no pages"
            raise BadInput(f"the document is neither OPML nor a sitemap that can be read: {reason}")
        if any(each.is_list for each in listed.entries):
            raise BadInput("the document is an index of sitemaps: import its sitemaps instead")
        names = [str(each.url) for each in listed.entries]
    else:
        lines = map(str.strip, text.splitlines())
        names = [line for line in lines if line and not line.startswith("#")]
    if len(names) > MAX_NAMES:
        raise BadInput(f"{len(names):,} names are more than {MAX_NAMES:,}: split them into several imports")
    return names


@recorded("add domain")
async def import_names(
    db: AppDatabase,
    names: Sequence[str],
    patch: SettingsPatch,
    *,
    tags: Sequence[str] = (),
    offline: bool = False,
    may_continue: Callable[[], bool] = lambda: True,
    max_probe_time: timedelta | None = None,
    at: datetime,
) -> ImportResult:
    """Register the domains of names and URLs, and add the URLs with a path as pages that are due now.

    New domains get the settings of the patch; `offline` is as in `add_domains`. A name of a registered domain fails.
    tags: of the new domains, and of the registered ones whose names or pages are given, unless these cannot have them.
    may_continue: returns whether there is time for further domains.  max_probe_time: as in `add_domains`.
    Raises BadInput for invalid settings.
    """
    urls_by_name, result = dict[str, Url](), ImportResult([], 0, {}, [])
    for name in names:
        try:
            urls_by_name[name] = parse_typed_url(name)
        except BadInput as error:
            result.failed[name] = str(error)
    names_by_authority = defaultdict[str, list[str]](list)
    for name, url in urls_by_name.items():
        names_by_authority[get_authority(url)].append(name)
    groups, pages = list(names_by_authority.values()), 0
    for start in range(0, len(groups), DOMAINS_PER_STEP):
        step = groups[start : start + DOMAINS_PER_STEP]
        if not may_continue():
            result.failed.update((name, NOT_REACHED) for group in step for name in group)
            continue
        firsts = [group[0] for group in step]
        results = await add_domains(db, firsts, patch, tags=tags, offline=offline, max_probe_time=max_probe_time, at=at)
        for group, added in zip(step, results, strict=True):
            if tags and added.domain is not None and not added.is_new:
                await _tag(db, added.domain, tags, result, at=at)
            pages += await _record(db, added, {name: urls_by_name[name] for name in group}, result, at=at)
    names = [each.authority for each in result.registered]
    chosen = compare_settings(DomainSettings(), make_domain_settings(patch, db.settings))["new"]
    values = "; ".join(filter(None, [chosen, format_count(pages, "more page") if pages else ""]))
    describe_action(object=format_names(names) or "no domain", new=values, is_change=bool(names or pages))
    return replace(result, pages=pages)


async def _record(
    db: AppDatabase, added: AddResult, urls_by_name: dict[str, Url], result: ImportResult, *, at: datetime
) -> int:
    """Add the pages of one domain, and complete the result. Return the number of pages."""
    if added.domain is None:
        result.failed.update(dict.fromkeys(urls_by_name, added.error))
        return 0
    if added.is_new:
        result.registered.append(added.domain)
        result.warnings.extend(filter(None, [added.warning]))
        del urls_by_name[added.name]  # its page is a seed of the new domain
    domain, scope, pages = added.domain, make_scope(added.domain, added.domain.settings), list[Url]()
    for name, url in urls_by_name.items():
        if get_path_and_query(url) == "/" and domain in result.tagged:
            continue
        if get_path_and_query(url) == "/":
            result.failed[name] = str(domains.build_already_registered_error(domain))
        elif (exclusion := scope.find_exclusion(url)) is not None:
            result.failed[name] = f"out of the scope of {domain.authority} ({exclusion.value.replace('_', ' ')})"
        else:
            pages.append(scope.to_domain_url(url))
    if pages:
        await domains.add_seeds(db, domain, pages, at=at)
    return len(pages)


async def _tag(db: AppDatabase, domain: Domain, tags: Sequence[str], result: ImportResult, *, at: datetime) -> None:
    """Add tags to a registered domain, and complete the result."""
    try:
        await change_tags(db, [domain.authority], add=tags, at=at)
        result.tagged.append(domain)
    except BadInput as error:
        result.warnings.append(str(error))
