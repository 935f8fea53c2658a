"""The endpoints of the API that change something or request fetches: their bodies and results."""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from crawler.app import domains, imports, page_list, revisits, rules, screenshots, tags, try_page
from crawler.app.changes import EventKind
from crawler.app.delivery import notifications
from crawler.app.delivery.notifications import SubscriptionRequest, SubscriptionState
from crawler.app.page_list import PageAction
from crawler.app.registration import get_domain, parse_typed_url
from crawler.app.screenshots import Screenshot
from crawler.app.settings import MAX_FACTOR, MAX_SECONDS, build_settings_schema, parse_document
from crawler.clock import Clock
from crawler.errors import NotFound, name_field
from crawler.server.api.endpoints import (
    MAX_CURSOR,
    MAX_VERSION,
    DomainDocument,
    DomainName,
    Number,
    RuleDocument,
    TagDocument,
    TagName,
    WaitDocument,
    build_row,
    describe_wait,
)
from crawler.server.api.page_endpoints import PageApi
from crawler.server.api.users import UsersApi

MAX_IMPORT_SECONDS = 60.0  # after this, an import starts no further domains
MAX_PROBE_TIME = timedelta(seconds=30)  # for the roots of those that it has started, so that its result is not lost
REMOVAL_SECONDS = 20.0  # after this, a removal continues without a response
MAX_TEXTS = 50  # of one kind in a rule
MAX_TAGGED = 10_000  # domains in one change of a tag
Text = Annotated[str, Field(max_length=8192)]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
SettingsChanges = Annotated[
    dict[str, Any],
    Field(description="The settings to change; null restores the default. A list replaces the existing one."),
    WithJsonSchema(build_settings_schema(is_change=True)),
]


TagSettingsChanges = Annotated[
    dict[str, Any],
    Field(description="The settings to change; null unsets one."),
    WithJsonSchema(build_settings_schema(is_change=True, of_tag=True)),
]
Tags = Annotated[list[Text], Field(max_length=MAX_TEXTS)]


class Body(BaseModel):
    """A JSON body. Unknown fields are errors, so that a misspelled one has no silent effect."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class DomainBody(Body):
    """A domain to register. offline: do not request its root page first."""

    url: Text
    settings: SettingsChanges = {}
    tags: Tags = []
    offline: bool = False


class DomainChanges(Body):
    """Changes of a domain. What is missing stays unchanged. tags: replace the existing ones."""

    settings: SettingsChanges = {}
    tags: Tags | None = None
    paused: bool | None = None


class TagChanges(Body):
    """Changes of a tag, which is created if it does not exist. add, remove: domains that get or lose the tag."""

    settings: TagSettingsChanges = {}
    add: Annotated[list[Text], Field(max_length=MAX_TAGGED)] = []
    remove: Annotated[list[Text], Field(max_length=MAX_TAGGED)] = []


class RuleBody(Body):
    """A rule for the pages that match a pattern. first: insert it before all other rules."""

    pattern: Text
    min_interval_seconds: Seconds | None = None
    max_interval_seconds: Seconds | None = None
    weight: Annotated[float, Field(gt=0, le=MAX_FACTOR)] | None = None
    once: bool = False
    max_pages: Annotated[int, Field(ge=0, le=MAX_VERSION)] | None = None
    ignore: Annotated[list[Text], Field(max_length=MAX_TEXTS)] = []
    watch: Annotated[list[Text], Field(max_length=MAX_TEXTS)] = []
    ignore_text: Annotated[list[Text], Field(max_length=MAX_TEXTS)] = []
    values: Annotated[list[Text], Field(max_length=MAX_TEXTS)] = []
    render: Literal["auto", "always", "never"] | None = None
    first: bool = False


class PageActionBody(Body):
    """An action on up to 200 pages of a domain, which are given by their URLs.

    action: recrawl (make them due now), boost (4 times as important), once (revisit only on request), or exclude.
    """

    action: PageAction
    urls: Annotated[list[Text], Field(min_length=1, max_length=page_list.MAX_SELECTED)]


class ImportBody(Body):
    """Domains and URLs to import. text: an OPML document, a sitemap, or a list with one of them per line.

    settings: of the new domains.  tags: of all these domains.  offline: do not request their root pages first.
    """

    text: str
    settings: SettingsChanges = {}
    tags: Tags = []
    offline: bool = False


class RecrawlBody(Body):
    """What to fetch again: a domain, the URL of a page, or a URL prefix with * at its end."""

    target: Text


class HintsBody(Body):
    """URLs of pages that may have changed. source: who says so; the accuracy of each source is measured."""

    urls: Annotated[list[Text], Field(min_length=1, max_length=revisits.MAX_HINTS)]
    source: str = "push"


class ScreenshotBody(Body):
    """A page to take a screenshot of."""

    url: Text


class TrialBody(Body):
    """A page to fetch without recording it. repeat: fetch it three times, to see what differs between fetches."""

    url: Text
    repeat: bool = False


class ConditionBody(Body):
    """When to notify: a text appears or goes, or a number is above or below a bound, or differs by a share of it.

    text, bound: the one that the kind needs, and not the other.
    """

    kind: Literal["appears", "goes", "above", "below", "differs"]
    text: str | None = None
    bound: float | None = None

    @model_validator(mode="after")
    def require_value(self) -> "ConditionBody":
        needed, other = ("text", "bound") if self.kind in {"appears", "goes"} else ("bound", "text")
        if getattr(self, needed) is None or getattr(self, other) is not None:
            raise ValueError(f"{self.kind} needs {needed}, and no {other}")
        return self


class SubscriptionFields(Body):
    """The fields of a subscription; null for none. target is required, and must not contain a secret.

    target: a webhook, an Apprise address, env:NAME or block:NAME.  domain, tag: null for all.
    page, prefix: URLs.
    pattern: of the pages.  min_magnitude: least share of a page that changed, 0 to 1.
    selector: the element to check.  value: the name of the value to check.
    digest: such as 1h, daily@07:30.  quiet_hours: such as 22-07.
    secret: env:NAME or block:NAME of the key that signs webhooks.  allow_private: allow private addresses.
    """

    domain: Text | None = None
    tag: Text | None = None
    page: Text | None = None
    prefix: Text | None = None
    pattern: Text | None = None
    min_magnitude: float | None = None
    kinds: list[EventKind] | None = None
    condition: ConditionBody | None = None
    selector: Text | None = None
    value: Text | None = None
    digest: Text | None = None
    quiet_hours: Text | None = None
    time_zone: Text | None = None
    secret: Text | None = None
    allow_private: bool = False

    def list_given(self) -> dict[str, Any]:
        """Return the given fields by their names in SubscriptionRequest."""
        names = {"selector": "place", "quiet_hours": "quiet", "time_zone": "zone", "condition": "conditions"}
        names |= {"value": "value_name"}
        given = {name: getattr(self, name) for name in self.model_fields_set - {"paused", "include_missed"}}
        if given.get("kinds") is not None:
            given["kinds"] = ",".join(given["kinds"])
        if "condition" in given:
            each = self.condition
            given["condition"] = {} if each is None else {each.kind: each.text if each.bound is None else each.bound}
        return {names.get(name, name): value for name, value in given.items()}


class SubscriptionBody(SubscriptionFields):
    target: Text


class SubscriptionChanges(SubscriptionFields):
    """Changes of a subscription. What is missing stays unchanged.

    include_missed: when it is resumed, also send the changes found during the pause.
    """

    target: Text = ""
    paused: bool | None = None
    include_missed: bool = False


class RedeliveryBody(Body):
    """Dead letters to send again: their numbers, or null for all."""

    dead_letters: Annotated[list[Annotated[int, Field(ge=1, le=MAX_CURSOR)]], Field(max_length=1000)] | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that takes longer than a response may take. location: where to see whether it is done."""

    location: str


@dataclass(frozen=True, slots=True)
class AddedDomain:
    """A new domain. warning: what was wrong with its root, or empty.  run: the address of its first crawl run, or null.

    domain: its name, as in the Location header.
    """

    domain: str
    root: str
    aliases: list[str]
    warning: str
    run: str | None


@dataclass(frozen=True, slots=True)
class ClockReset:
    """last_visit_at: the last visit in the future, which is now; null if there was none, so nothing changed."""

    last_visit_at: datetime | None


@dataclass(frozen=True, slots=True)
class ImportDocument:
    """The result of an import.

    registered: the names of new domains.  pages: the number of pages that were added to registered domains.
    failed: the names that were not imported, with the reasons.  warnings: what was wrong with roots and tags.
    tagged: the names of registered domains that got the tags.
    """

    registered: list[str]
    tagged: list[str]
    pages: int
    failed: dict[str, str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class RecrawlDocument:
    """The result of a recrawl. url, pages: what is due now.  wait: why it is not fetched now, or null.

    run: the address of the crawl run that was started, or null.
    """

    domain: str
    url: str
    pages: int
    run: str | None
    wait: WaitDocument | None


@dataclass(frozen=True, slots=True)
class PageActionDocument:
    """The result of an action. pages: how many.  run: the address of the crawl run that was started, or null.

    wait: why the pages to be recrawled are not fetched now, or null.
    """

    pages: int
    run: str | None
    wait: WaitDocument | None


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a test message. error: null if it was sent."""

    is_sent: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class RedeliveryDocument:
    """dead_letters: how many are sent again."""

    dead_letters: int


@dataclass(frozen=True, slots=True)
class WritingApi(UsersApi, PageApi):
    """All endpoints of one store. removals: the tasks that delete domains, by their ids."""

    removal_seconds: float = REMOVAL_SECONDS
    removals: dict[int, asyncio.Future[Any]] = field(default_factory=dict)

    async def add_domain(self, *, body: DomainBody) -> AddedDomain:
        """Register a domain. If a local stack runs, its first crawl starts."""
        patch, _ = parse_document(body.settings)
        with name_field("url"):
            results = await domains.add_domains(
                self.db, [body.url], patch, tags=body.tags, offline=body.offline, at=self.now()
            )
            domain = results[0].new_domain
        run = await revisits.try_to_recrawl(self.db, domain, f"{domain.root}*")
        return AddedDomain(domain.authority, domain.root, sorted(domain.aliases), results[0].warning, run or None)

    async def change_domain(self, *, domain: DomainName, body: DomainChanges) -> DomainDocument:
        """Change settings and tags of a domain, pause it or resume it."""
        found = await get_domain(self.db, domain)
        tags.parse_tags(body.tags or ())  # an invalid name changes no settings either
        if body.settings:
            patch, unset = parse_document(body.settings)
            with name_field("settings"):
                await domains.change_settings(self.db, found, patch, unset=unset, at=self.now())
        if body.tags is not None:
            with name_field("tags"):
                await tags.set_tags(self.db, found, body.tags, at=self.now())
        if body.paused is not None:
            await domains.set_paused(self.db, [found.authority], paused=body.paused)
        return await self.get_domain(domain=found.authority)

    async def remove_domain(self, *, domain: DomainName) -> Accepted | None:
        """Delete a domain with all its pages, versions and changes.

        If it takes longer than 20 seconds, the response is 202 and the removal continues: `GET /domains/{domain}`
        returns 404 when it is done.
        """
        found = await get_domain(self.db, domain)
        task = self.removals.get(found.id)
        if task is None:
            task = asyncio.ensure_future(domains.remove_domains(self.db, [found.authority]))
            self.removals[found.id] = task
            task.add_done_callback(lambda _: self.removals.pop(found.id))
        done, _ = await asyncio.wait([task], timeout=self.removal_seconds)
        if not done:
            return Accepted(f"/domains/{found.authority}")
        await task
        return None

    async def act_on_pages(self, *, domain: DomainName, body: PageActionBody) -> PageActionDocument:
        """Recrawl, boost, exclude or no longer revisit several pages of a domain."""
        found = await get_domain(self.db, domain)
        result = await page_list.act_on_pages(self.db, found, body.action, body.urls, at=self.now())
        if result.recrawl is None:
            return PageActionDocument(result.pages, None, None)
        wait = describe_wait(found, result.recrawl.wait, now=self.now())
        return PageActionDocument(result.pages, result.recrawl.run_url or None, wait)

    async def reset_clock(self, *, domain: DomainName) -> ClockReset:
        """Set the time of visits in the future to now, after a crawl with a wrong clock."""
        ((_, last_visit_at),) = await domains.reset_clocks(self.db, [domain], at=self.now())
        return ClockReset(last_visit_at)

    async def change_tag(self, *, tag: TagName, body: TagChanges) -> TagDocument:
        """Change the settings of a tag, which its domains inherit, or give the tag to domains and remove it.

        A tag that does not exist is created. If a domain cannot have the settings, because another of its tags sets one
        differently, the settings or domains in question do not change.
        """
        if body.settings or not (body.add or body.remove):  # without any change, too, the tag is created
            patch, unset = parse_document(body.settings)
            with name_field("settings"):
                await tags.change_tag_settings(self.db, tag, patch, unset=unset, at=self.now())
        for place, names in (("remove", body.remove), ("add", body.add)):
            with name_field(place):
                if names:
                    await tags.change_tags(self.db, names, **{place: [tag]}, at=self.now())
        return await self.get_tag(tag=tag)

    async def remove_tag(self, *, tag: TagName) -> None:
        """Delete a tag. Its domains no longer have its settings."""
        await tags.remove_tag(self.db, tag, at=self.now())

    async def add_rule(self, *, domain: DomainName, body: RuleBody) -> RuleDocument:
        """Add a rule to a domain. It replaces a rule with the same pattern."""
        found = await get_domain(self.db, domain)
        rule = rules.parse_rule(body.model_dump(exclude={"first"}))
        await rules.add_rule(self.db, found, rule, first=body.first, at=self.now())
        return RuleDocument(**rules.describe_rule(rule))

    async def remove_rule(
        self, *, domain: DomainName, pattern: Annotated[str, Query(max_length=8192, description="The rule's pattern.")]
    ) -> None:
        """Remove the rule with this pattern from a domain."""
        await rules.remove_rule(self.db, await get_domain(self.db, domain), pattern, at=self.now())

    async def import_urls(self, *, body: ImportBody) -> ImportDocument:
        """Register the domains of a list, an OPML document or a sitemap, and add its URLs as pages to be fetched.

        Names that are not imported do not stop the others. After a minute, no further domains are registered: send the
        failed names again.
        """
        patch, _ = parse_document(body.settings)
        with name_field("text"):
            names = imports.parse_import(body.text)
        until = time.monotonic() + MAX_IMPORT_SECONDS
        result = await imports.import_names(
            self.db,
            names,
            patch,
            tags=body.tags,
            offline=body.offline,
            may_continue=lambda: time.monotonic() < until,
            max_probe_time=MAX_PROBE_TIME,
            at=self.now(),
        )
        registered, tagged = ([each.authority for each in found] for found in (result.registered, result.tagged))
        return build_row(ImportDocument, result, registered=registered, tagged=tagged)

    async def recrawl(self, *, body: RecrawlBody) -> RecrawlDocument:
        """Make a domain, a page or the pages with a URL prefix due now. A running local stack fetches them at once."""
        with name_field("target"):
            result = await revisits.recrawl(self.db, body.target)
        wait = describe_wait(result.domain, result.wait, now=self.now())
        return build_row(RecrawlDocument, result, domain=result.domain.authority, run=result.run_url or None, wait=wait)

    async def add_hints(self, *, body: HintsBody) -> revisits.HintResult:
        """Report that pages may have changed, without forcing a fetch. The accuracy of each source is measured."""
        with name_field("source"):
            revisits.require_source(body.source)
        with name_field("urls"):
            urls = [parse_typed_url(url) for url in body.urls]
        return await revisits.record_hints(self.db, urls, source=body.source, at=self.now())

    async def try_page(self, *, body: TrialBody) -> dict[str, Any]:
        """Fetch a page without recording it, and return what would be compared and what would count as a change."""
        how = try_page.TryOptions(again=body.repeat)
        with name_field("url"):
            return try_page.describe_trial(await try_page.try_url(self.db, body.url, how=how, at=None))

    async def take_screenshot(self, *, body: ScreenshotBody) -> Screenshot:
        """Fetch and render a page without recording a visit, and store a screenshot without the page's images."""
        with name_field("url"):
            _, taken = await screenshots.take_screenshot(self.db, body.url, clock=Clock.from_instant(None))
        return taken

    async def add_subscription(self, *, body: SubscriptionBody) -> SubscriptionState:
        """Add a subscription: notify its target of changes from now on."""
        request = SubscriptionRequest(**body.list_given())
        added = await notifications.subscribe(self.db, request, at=self.now())
        return notifications.describe_subscription(self.db.settings, added)

    async def change_subscription(self, *, number: Number, body: SubscriptionChanges) -> SubscriptionState:
        """Change a subscription, pause it or resume it."""
        if given := body.list_given():
            await notifications.change_subscription(self.db, number, given, at=self.now())
        at, stop = self.now(), asyncio.Event()
        if body.paused:
            await notifications.pause(self.db, number, at=at, stop=stop)
        elif body.paused is False:
            await notifications.resume(self.db, number, missed=body.include_missed, at=at, stop=stop)
        return await self.get_subscription(number=number)

    async def remove_subscription(self, *, number: Number) -> None:
        """Remove a subscription with its waiting changes and dead letters."""
        await notifications.unsubscribe(self.db, number)

    async def test_subscription(self, *, number: Number) -> TestResult:
        """Send a test message now. If it succeeds, waiting changes are due at once."""
        _, error = await notifications.send_test_notification(self.db, number)
        return TestResult(not error, error or None)

    async def redeliver(self, *, body: RedeliveryBody) -> RedeliveryDocument:
        """Queue dead letters to be sent again."""
        count = await notifications.redeliver_letters(self.db, body.dead_letters, at=self.now())
        return RedeliveryDocument(count)

    async def discard_dead_letter(self, *, number: Number) -> None:
        """Delete a dead letter."""
        if not await notifications.discard_letters(self.db, [number], at=self.now()):
            raise NotFound(f"there is no dead letter {number}")
