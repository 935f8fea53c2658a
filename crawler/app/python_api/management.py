"""The operations of the Python API that change domains, rules and subscriptions, or explain a page."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from crawler.app import domains, explain, imports, page_list, pages, revisits, rules, tags, try_page
from crawler.app.action_log import Action, ActionQuery, list_actions
from crawler.app.database import AppDatabase
from crawler.app.delivery import notifications
from crawler.app.delivery.notifications import DeadLetter, SubscriptionRequest, SubscriptionState
from crawler.app.domains import Domain, DomainDetails, DomainSettings
from crawler.app.imports import ImportResult
from crawler.app.page_list import PageAction, PageActionResult, PageListPart, PageQuery
from crawler.app.pages import VersionDiff
from crawler.app.registration import get_domain, parse_typed_url
from crawler.app.rules import PageRule
from crawler.app.running import users
from crawler.app.running.users import Invitation, User
from crawler.app.settings import BY_NAME, get_option_name, make_changed_patch, make_patch
from crawler.app.tags import TagSummary

ALL_PAGES = PageQuery()


class Management:
    """The operations that manage domains and subscriptions. Errors are as in App."""

    __slots__ = ()
    _db: AppDatabase

    async def inspect(self, domain: str) -> DomainDetails:
        """Return a domain with its state, and why it is not being fetched now."""
        return await domains.inspect_domain(self._db, domain)

    async def set(self, /, domain: str, *, unset: Collection[str] = (), **settings: Any) -> Domain:
        """Change settings of a domain, given by the names of DomainSettings; `unset` restores defaults.

        New seeds are added to the existing ones; other lists are replaced.
        """
        make_patch(dict.fromkeys(unset))  # raises BadInput for an unknown name
        patch, options = make_patch(settings), [get_option_name(BY_NAME[name]) for name in unset]
        found = await get_domain(self._db, domain)
        return await domains.change_settings(self._db, found, patch, unset=options, at=datetime.now(UTC))

    async def tags(self) -> list[TagSummary]:
        """Return the tags of domains, with their settings and domains."""
        return await tags.list_tags(self._db)

    async def tag(self, *names: str, add: Collection[str] = (), remove: Collection[str] = ()) -> list[Domain]:
        """Add tags to domains and remove others. A tag that does not exist is created."""
        return await tags.change_tags(self._db, names, add=list(add), remove=list(remove), at=datetime.now(UTC))

    async def set_tag(self, /, tag: str, *, unset: Collection[str] = (), **settings: Any) -> TagSummary:
        """Change settings of a tag, which its domains inherit. A tag that does not exist is created."""
        make_patch(dict.fromkeys(unset))  # raises BadInput for an unknown name
        patch, options = make_patch(settings), [get_option_name(BY_NAME[name]) for name in unset]
        return (await tags.change_tag_settings(self._db, tag, patch, unset=options, at=datetime.now(UTC)))[0]

    async def remove_tag(self, tag: str) -> list[Domain]:
        """Delete a tag; its domains no longer have its settings."""
        return await tags.remove_tag(self._db, tag, at=datetime.now(UTC))

    async def pause(self, *names: str) -> list[Domain]:
        """Pause domains until they are resumed. Requests in progress are finished."""
        return await domains.set_paused(self._db, names, paused=True)

    async def resume(self, *names: str) -> list[Domain]:
        """Resume paused domains."""
        return await domains.set_paused(self._db, names, paused=False)

    async def reset_clock(self, *names: str) -> dict[str, datetime | None]:
        """Set the time of visits in the future to now; return the last such time of each domain, or None."""
        reset = await domains.reset_clocks(self._db, names, at=datetime.now(UTC))
        return {domain.authority: last_visit_at for domain, last_visit_at in reset}

    async def page_list(
        self, domain: str, query: PageQuery = ALL_PAGES, *, max_count: int = 100, at: datetime | None = None
    ) -> PageListPart:
        """Return a part of the list of a domain's pages; `more` of the result is `after` of the next query."""
        found = await get_domain(self._db, domain)
        return await page_list.list_domain_pages(
            self._db, found, query, max_count=max_count, at=at or datetime.now(UTC)
        )

    async def act_on_pages(self, domain: str, action: PageAction, *urls: str) -> PageActionResult:
        """Recrawl, boost, exclude or no longer revisit pages of a domain."""
        found = await get_domain(self._db, domain)
        return await page_list.act_on_pages(self._db, found, PageAction(action), urls, at=datetime.now(UTC))

    async def diff(
        self, url: str, *, before: int | None = None, after: int | None = None, context: int = 1
    ) -> VersionDiff:
        """Compare two versions of a page; by default, the last two. context: unchanged blocks around each change."""
        at = datetime.now(UTC)
        return await pages.compare_versions(self._db, url, before=before, after=after, context=context, now=at)

    async def remove(self, *names: str) -> list[Domain]:
        """Delete domains with all their data."""
        return await domains.remove_domains(self._db, names)

    async def import_text(
        self,
        text: str,
        *,
        settings: DomainSettings | None = None,
        tags: Collection[str] = (),
        offline: bool = False,
    ) -> ImportResult:
        """Register the domains of a list, an OPML document or a sitemap, and add its URLs as pages that are due now."""
        names, patch = imports.parse_import(text), make_changed_patch(settings or DomainSettings())
        at = datetime.now(UTC)
        return await imports.import_names(self._db, names, patch, tags=list(tags), offline=offline, at=at)

    async def add_rule(self, domain: str, rule: PageRule, *, first: bool = False) -> Domain:
        """Add a rule, or replace the rule with its pattern. first: insert it before all other rules."""
        found = await get_domain(self._db, domain)
        return await rules.add_rule(self._db, found, rule, first=first, at=datetime.now(UTC))

    async def remove_rule(self, domain: str, pattern: str) -> Domain:
        """Remove the rule with this pattern."""
        return await rules.remove_rule(self._db, await get_domain(self._db, domain), pattern, at=datetime.now(UTC))

    async def explain(self, url: str) -> dict[str, object]:
        """Return when and why a URL is fetched next, or why not, as `recrawl explain --json` does."""
        return await explain.explain_for_json(self._db, url)

    async def try_page(self, url: str, *, repeat: bool = False) -> dict[str, object]:
        """Fetch a page without recording it, and return what would be compared, as `recrawl try --json` does."""
        how = try_page.TryOptions(again=repeat)
        return try_page.describe_trial(await try_page.try_url(self._db, url, how=how, at=None))

    async def hint(self, *urls: str, source: str = "push") -> revisits.HintResult:
        """Report that pages may have changed, without forcing a fetch. The accuracy of each source is measured."""
        parsed = [parse_typed_url(url) for url in urls]
        return await revisits.record_hints(self._db, parsed, source=source, at=datetime.now(UTC))

    async def subscriptions(self) -> list[SubscriptionState]:
        """Return the subscriptions to notifications, with the state of their deliveries."""
        return list(map(self._describe, await notifications.list_subscriptions(self._db)))

    async def subscribe(self, request: SubscriptionRequest) -> SubscriptionState:
        """Add a subscription: notify its target of changes from now on."""
        return self._describe(await notifications.subscribe(self._db, request, at=datetime.now(UTC)))

    async def change_subscription(self, /, number: int, **changes: Any) -> SubscriptionState:
        """Change fields of a subscription's request, and try its waiting messages at once."""
        return self._describe(await notifications.change_subscription(self._db, number, changes, at=datetime.now(UTC)))

    async def pause_subscription(self, number: int) -> SubscriptionState:
        """Pause a subscription; unsent changes wait."""
        at, stop = datetime.now(UTC), asyncio.Event()
        return self._describe((await notifications.pause(self._db, number, at=at, stop=stop))[1])

    async def resume_subscription(self, number: int, *, include_missed: bool = False) -> SubscriptionState:
        """Resume a subscription. include_missed: also send the changes found during the pause."""
        at, stop = datetime.now(UTC), asyncio.Event()
        _, resumed = await notifications.resume(self._db, number, missed=include_missed, at=at, stop=stop)
        return self._describe(resumed)

    def _describe(self, subscription: notifications.Subscription) -> SubscriptionState:
        return notifications.describe_subscription(self._db.settings, subscription)

    async def test_subscription(self, number: int) -> str:
        """Send a test message now; return the error, empty if it was sent."""
        return (await notifications.send_test_notification(self._db, number))[1]

    async def unsubscribe(self, number: int) -> None:
        """Remove a subscription with its waiting changes and dead letters."""
        await notifications.unsubscribe(self._db, number)

    async def dead_letters(self, number: int | None = None, *, after: int = 0) -> list[DeadLetter]:
        """Return up to 200 dead letters of one subscription or all, oldest first. after: the id of the one before."""
        return await notifications.list_dead_letters(self._db, number, after=after)

    async def redeliver(self, *numbers: int) -> int:
        """Queue dead letters to be sent again; all without numbers. Return how many."""
        return await notifications.redeliver_letters(self._db, numbers or None, at=datetime.now(UTC))

    async def users(self) -> Sequence[User]:
        """Return the users of the web UI."""
        return await users.list_users(self._db)

    async def add_user(self, name: str, role: str = "view") -> Invitation:
        """Add a user of the web UI, and return the link with which the person sets a password."""
        return await users.add_user(self._db, name, users.parse_role(role), at=datetime.now(UTC))

    async def change_user(self, name: str, *, role: str | None = None, disabled: bool | None = None) -> User:
        """Change the role of a user, or disable or enable the user. Disabling ends all sessions."""
        chosen = users.parse_role(role) if role is not None else None
        return await users.change_user(self._db, name, role=chosen, disabled=disabled, at=datetime.now(UTC))

    async def remove_user(self, name: str) -> User:
        """Remove a user, which ends all sessions of the user."""
        return await users.remove_user(self._db, name)

    async def actions(
        self, *, actor: str = "", words: str = "", since: datetime | None = None, max_count: int = 100
    ) -> Sequence[Action]:
        """Return who changed what, newest first: of one actor, with a text, or since a time."""
        return await list_actions(self._db, ActionQuery(actor, words, since), max_count=max_count)

    async def discard(self, *numbers: int) -> int:
        """Delete dead letters; return how many."""
        return await notifications.discard_letters(self._db, numbers, at=datetime.now(UTC))
