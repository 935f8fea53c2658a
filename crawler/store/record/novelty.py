"""Learning the novelty of URL templates from first visits, and deferring unfetched pages of unproductive templates.

Templates are the groups of pages that share a prior; `assign_groups` assigns new pages to them. The novelty of a
template is the share of new text in first visits; an *unproductive* template has almost none. A *section* is the part
of the site that several templates share (but column frontier.section has the number of the template). A deferred page
is unfetched and has a due time; one page of each template is due per RETRY_INTERVAL. The rules are in core/novelty.py.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from crawler.core.freshness.prior import OTHER_TEMPLATES, choose_group
from crawler.core.http.urls import PageKey, Url
from crawler.core.novelty import (
    MAX_WAIT,
    NO_EVIDENCE,
    RETRY_INTERVAL,
    NoveltyEvidence,
    NoveltyMemory,
    TemplateNovelty,
    compute_next_time,
    get_section,
    has_repeated_folders,
    is_unproductive,
)
from crawler.core.visit.state import State
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.learned.domain_memory import read_novelty_memory, write_memory
from crawler.store.record.opic import OpicBatch
from crawler.store.rows import build_unnest, execute, fetch_rows, fetch_value, split_into_columns

MAX_MOVED = 2000  # pages deferred or resumed with one batch
# A page that links to new pages of other sections has at least this fraction of the highest novelty of their templates.
LINKS_VALUE = 0.5

GROUPS = "SELECT template, no FROM prior WHERE domain_id = %s"
# A new group starts with the prior of the domain.
ADD_GROUPS = f"""
    INSERT INTO prior (domain_id, no, template, a, b, magnitude)
    SELECT %(domain_id)s, x.no, x.template, d.a, d.b, d.magnitude
      FROM {build_unnest("no smallint, template text")}
      JOIN prior d ON d.domain_id = %(domain_id)s AND d.no = 0
    ON CONFLICT DO NOTHING
"""  # noqa: S608  only our own columns are inserted
TEMPLATES = """
    SELECT no, template, first_visits, novelty, deferred_until, is_moving FROM prior WHERE domain_id = %s AND no > 0
"""
TEMPLATE_COLUMNS = "no smallint, visits float8, found float8, deferred_until timestamptz, is_moving bool"
PUT_TEMPLATES = f"""
    UPDATE prior p SET first_visits = x.visits, novelty = x.found, deferred_until = x.deferred_until,
                   is_moving = x.is_moving
      FROM {build_unnest(TEMPLATE_COLUMNS)}
     WHERE p.domain_id = %(domain_id)s AND p.no = x.no
       AND (p.first_visits, p.novelty, p.deferred_until, p.is_moving)
           IS DISTINCT FROM (x.visits, x.found, x.deferred_until, x.is_moving)
"""  # noqa: S608  only our own columns are inserted
# Defers the pages that would come next, except dispatched ones, which are being fetched. Boosted and requested pages
# are never deferred.
DEFER_PAGES = """
    WITH chosen AS (
        SELECT key, row_number() OVER (ORDER BY rank DESC, key) AS place
          FROM (SELECT key, rank FROM frontier
                 WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at IS NULL AND NOT boosted
                   AND request_reason = 0 AND section = %(no)s AND key <> ALL(%(dispatched)s::bytea[])
                 ORDER BY rank DESC, key LIMIT %(most)s) f)
    UPDATE frontier f SET due_at = least(%(after)s + chosen.place * %(every)s::interval, %(last)s) FROM chosen
     WHERE f.domain_id = %(domain_id)s AND f.key = chosen.key
"""
HAS_UNDEFERRED = """
    SELECT count(*) > 0 FROM frontier
     WHERE domain_id = %(domain_id)s AND key = ANY(%(dispatched)s::bytea[]) AND state = 'unfetched' AND due_at IS NULL
       AND NOT boosted AND request_reason = 0 AND section = %(no)s
"""
RESUME_PAGES = """
    WITH chosen AS (
        SELECT key FROM frontier
         WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at IS NOT NULL AND section = %(no)s
         ORDER BY due_at, key LIMIT %(most)s)
    UPDATE frontier f SET due_at = NULL FROM chosen WHERE f.domain_id = %(domain_id)s AND f.key = chosen.key
"""


class Deferral(Struct, frozen=True):
    """A change of a section: its unfetched pages are deferred from now on, or resumed. url: one of its pages."""

    url: Url
    at: datetime
    is_deferred: bool


class NoveltyBatch(Struct):
    """The novelty of a domain's templates while a batch is recorded: loaded, changed here, and written back.

    deferrals: one when the first template of a section is deferred, one when its last deferred template is resumed.
    """

    memory: NoveltyMemory
    templates: dict[str, TemplateNovelty]
    deferrals: list[Deferral] = field(default_factory=list)
    _sections: dict[str, NoveltyEvidence] = field(default_factory=dict)

    def learn_visit(self, visit: Visit, new_urls: Iterable[Url], opic_batch: OpicBatch) -> None:
        """Learn from a page's first visit. new_urls: the pages that the visit discovered, except deferred ones."""
        novelty = self._compute_novelty(visit, opic_batch)
        if novelty is None:
            return
        template = self._choose_group(visit.target.url)
        if self.memory.learn_parameters(visit.target.url, novelty):
            return  # a query parameter explains the novelty, not the template
        others = {group for group in map(self._choose_group, new_urls) if get_section(group) != get_section(template)}
        link_novelty = max((LINKS_VALUE * self._estimate_share(other) for other in others), default=0.0)
        template_novelty = self._get_template(template)
        template_novelty.learn(max(novelty, link_novelty))
        self._sections.pop(get_section(template), None)
        if self._is_unproductive(template, template_novelty) != template_novelty.is_deferred:
            self._toggle_deferral(visit.target.url, template_novelty, visit.at)

    def _compute_novelty(self, visit: Visit, opic_batch: OpicBatch) -> float | None:
        """Return the novelty of a first visit, 0 to 1; None for other visits, or if it cannot be judged."""
        if visit.target.state is not State.UNFETCHED:
            return None
        if visit.sample is not None:
            return self.memory.measure_novelty(visit.sample)
        if visit.state is State.GONE or visit.status in (404, 410):
            return 0.0 if visit.target.depth else None  # a dead seed says nothing about links
        if visit.signals is not None:
            return None  # possibly a soft error, such as a login page
        led_to = visit.moved_to.key if visit.moved_to else visit.led_to
        position = opic_batch.positions.get(led_to) if led_to else None
        return 0.0 if position and position.found_at is None else None  # 0: it redirects to a page found before

    def compute_due_at(self, url: Url, at: datetime, *, boosted: bool) -> datetime | None:
        """Return until when a page that was just discovered is deferred, or None if it is not."""
        is_another_name = self.memory.is_duplicate_url(url)
        if boosted:
            return None
        if is_another_name or has_repeated_folders(url):
            self.memory.next_time = compute_next_time(self.memory.next_time, at)
            return self.memory.next_time
        template = self._choose_group(url)
        template_novelty = self._get_template(template)
        if not self._is_unproductive(template, template_novelty):
            return None
        if not template_novelty.is_deferred:
            self._toggle_deferral(url, template_novelty, at)
        template_novelty.deferred_until = compute_next_time(template_novelty.deferred_until, at)
        return template_novelty.deferred_until

    def estimate_novelty(self, url: Url) -> float:
        """Estimate the share of new text in a first visit from earlier first visits of its template."""
        return self._estimate_share(self._choose_group(url))

    def _toggle_deferral(self, url: Url, template_novelty: TemplateNovelty, at: datetime) -> None:
        section = get_section(self._choose_group(url))
        in_section = (each for name, each in self.templates.items() if get_section(name) == section)
        if not any(each.is_deferred for each in in_section if each is not template_novelty):
            self.deferrals.append(Deferral(url, at, is_deferred=not template_novelty.is_deferred))
        if template_novelty.is_deferred:
            template_novelty.resume()
        else:
            template_novelty.defer(at)
        self._sections.pop(section, None)

    def _is_unproductive(self, template: str, template_novelty: TemplateNovelty) -> bool:
        """Return whether a template has almost no novelty. The group of all other templates is never unproductive."""
        return template != OTHER_TEMPLATES and is_unproductive(
            template_novelty, self._sum_section(get_section(template))
        )

    def _estimate_share(self, template: str) -> float:
        novelty = self.templates.get(template)
        return 1.0 if novelty is None else novelty.evidence.compute_share(expected=1.0, shrinkage_visits=1.0)

    def _sum_section(self, name: str) -> NoveltyEvidence:
        if name not in self._sections:
            evidence = (each.evidence for key, each in self.templates.items() if get_section(key) == name)
            self._sections[name] = sum(evidence, start=NO_EVIDENCE)
        return self._sections[name]

    def _choose_group(self, url: Url) -> str:
        return choose_group(url, self.templates)

    def _get_template(self, template: str) -> TemplateNovelty:
        """Return the novelty of a template. A new one has no evidence, and no number until a page of it is stored."""
        return self.templates.setdefault(template, TemplateNovelty(0))


def is_needed(opic_batch: OpicBatch, visits: Sequence[Visit]) -> bool:
    """Return whether a batch has a first visit or discovers a page."""
    return any(
        visit.target.state is State.UNFETCHED
        or any(link.key not in opic_batch.positions for link in (*(visit.links or ()), *visit.feeds))
        or (visit.moved_to is not None and visit.moved_to.key not in opic_batch.positions)
        for visit in visits
    )


async def load_novelty(connection: Connection, domain_id: int) -> NoveltyBatch:
    """Read the novelty of the domain's templates."""
    rows = await fetch_rows(connection, TEMPLATES, (domain_id,))
    templates = {
        template: TemplateNovelty(no, NoveltyEvidence(visits, found), deferred_until, is_moving)
        for no, template, visits, found, deferred_until, is_moving in rows
    }
    return NoveltyBatch(await read_novelty_memory(connection, domain_id), templates)


async def write_novelty(
    connection: Connection, domain_id: int, batch: NoveltyBatch, *, at: datetime, dispatched: Collection[PageKey] | None
) -> None:
    """Store the novelty, and defer or resume existing pages. Call this after new pages are written.

    dispatched: pages that are being fetched. If None (unknown), pages are deferred or resumed when the next batch is
    recorded.
    """
    if not all(each.no for each in batch.templates.values()):  # new groups got their numbers when pages were written
        groups: dict[str, int] = dict(await fetch_rows(connection, GROUPS, (domain_id,)))
        for template, template_novelty in batch.templates.items():
            template_novelty.no = groups.get(template, 0)
    rows = []
    for each in batch.templates.values():
        if each.no and each.is_moving and dispatched is not None:
            each.is_moving = await _move_pages(connection, domain_id, each, at=at, dispatched=dispatched)
        if each.no:
            evidence = each.evidence
            rows.append((each.no, evidence.visits, evidence.novelty_sum, each.deferred_until, each.is_moving))
    await connection.execute(PUT_TEMPLATES, split_into_columns(TEMPLATE_COLUMNS, rows) | {"domain_id": domain_id})
    await write_memory(connection, domain_id, batch.memory)


async def _move_pages(
    connection: Connection, domain_id: int, novelty: TemplateNovelty, *, at: datetime, dispatched: Collection[PageKey]
) -> bool:
    """Defer or resume some pages of a template and return whether there may be more."""
    values: dict[str, Any] = {"domain_id": domain_id, "no": novelty.no, "most": MAX_MOVED}
    if novelty.deferred_until is None:
        return await execute(connection, RESUME_PAGES, values) == MAX_MOVED
    after = max(novelty.deferred_until, at)
    values |= {"after": after, "every": RETRY_INTERVAL, "last": at + MAX_WAIT, "dispatched": list(dispatched)}
    moved_count = await execute(connection, DEFER_PAGES, values)
    novelty.deferred_until = min(after + moved_count * RETRY_INTERVAL, at + MAX_WAIT)
    return moved_count == MAX_MOVED or bool(await fetch_value(connection, HAS_UNDEFERRED, values))


async def assign_groups(connection: Connection, domain_id: int, urls: Sequence[Url]) -> list[int]:
    """Return the number of each URL's group and add new groups, up to the limit of a domain."""
    groups: dict[str, int] = dict(await fetch_rows(connection, GROUPS, (domain_id,)))
    new_groups: dict[str, int] = {}
    numbers = []
    for url in urls:
        template = choose_group(url, groups)
        if template not in groups and template != OTHER_TEMPLATES:
            new_groups[template] = groups[template] = max(groups.values(), default=0) + 1
        numbers.append(groups.get(template, 0))
    if new_groups:
        values = {"domain_id": domain_id, "no": list(new_groups.values()), "template": list(new_groups)}
        await connection.execute(ADD_GROUPS, values)
    return numbers
