"""What first looks teach of a domain's templates while a batch is recorded, and which new pages are held back for it.

Templates are the groups of pages that share a prior; `groups_of` says which one a new page belongs to.

A page that is held back is new and has a due time: one of each template may be asked for an interval.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crawler.core.freshness.prior import ELSEWHERE, group_of
from crawler.core.http.urls import PageKey, Url
from crawler.core.novelty import (
    ASK_AGAIN_EVERY,
    LONGEST_WAIT,
    NO_EVIDENCE,
    NoveltyEvidence,
    NoveltyMemory,
    TemplateNovelty,
    has_repeats,
    is_barren,
    section_of,
    time_after,
)
from crawler.core.visit.visit import State, Visit
from crawler.store.database import Connection
from crawler.store.learned.memories import novelty_memory_of, put_memory
from crawler.store.record.opic import OpicBatch
from crawler.store.rows import execute, fetch_rows, fetch_value, to_columns, unnest

MOST_MOVED = 2000  # pages held back, or let go, with one batch
LINKS_WORTH = 0.5  # of what pages of other sections are worth that a look makes known

GROUPS = "SELECT template, no FROM prior WHERE domain_id = %s"
# A group that is new knows what the domain knows.
ADD_GROUPS = f"""
    INSERT INTO prior (domain_id, no, template, a, b, amount)
    SELECT %(domain_id)s, x.no, x.template, d.a, d.b, d.amount
      FROM {unnest("no smallint, template text")}
      JOIN prior d ON d.domain_id = %(domain_id)s AND d.no = 0
    ON CONFLICT DO NOTHING
"""  # noqa: S608  only our own columns are put in
TEMPLATES = "SELECT no, template, first_looks, novelty, held_until, is_moving FROM prior WHERE domain_id = %s"
TEMPLATE_COLUMNS = "no smallint, looks float8, found float8, held_until timestamptz, is_moving bool"
PUT_TEMPLATES = f"""
    UPDATE prior p SET first_looks = x.looks, novelty = x.found, held_until = x.held_until, is_moving = x.is_moving
      FROM {unnest(TEMPLATE_COLUMNS)}
     WHERE p.domain_id = %(domain_id)s AND p.no = x.no
       AND (p.first_looks, p.novelty, p.held_until, p.is_moving)
           IS DISTINCT FROM (x.looks, x.found, x.held_until, x.is_moving)
"""  # noqa: S608  only our own columns are put in
# The first ones, since they would come next, but for those that are handed out: they are being fetched, and their days
# would be lost. What its user favours, or named by its URL, is never held back.
HOLD = """
    WITH chosen AS (
        SELECT key, row_number() OVER (ORDER BY rank DESC, key) AS place
          FROM (SELECT key, rank FROM frontier
                 WHERE domain_id = %(domain_id)s AND state = 'new' AND due_at IS NULL AND NOT favoured AND wanted = 0
                   AND section = %(no)s AND key <> ALL(%(handed_out)s::bytea[])
                 ORDER BY rank DESC, key LIMIT %(most)s) f)
    UPDATE frontier f SET due_at = least(%(after)s + chosen.place * %(every)s::interval, %(last)s) FROM chosen
     WHERE f.domain_id = %(domain_id)s AND f.key = chosen.key
"""
LEFT_OUT = """
    SELECT count(*) > 0 FROM frontier
     WHERE domain_id = %(domain_id)s AND key = ANY(%(handed_out)s::bytea[]) AND state = 'new' AND due_at IS NULL
       AND NOT favoured AND wanted = 0 AND section = %(no)s
"""
LET_GO = """
    WITH chosen AS (
        SELECT key FROM frontier
         WHERE domain_id = %(domain_id)s AND state = 'new' AND due_at IS NOT NULL AND section = %(no)s
         ORDER BY due_at, key LIMIT %(most)s)
    UPDATE frontier f SET due_at = NULL FROM chosen WHERE f.domain_id = %(domain_id)s AND f.key = chosen.key
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """A section, by a page of it, whose new pages are held back from now on, or let go."""

    url: Url
    at: datetime
    is_held: bool


@dataclass(slots=True)
class NoveltyBatch:
    """The novelty of a domain's templates, while one batch is settled; loaded, changed here, and written back whole.

    turns: told once for a section, however many templates a trap makes of it.
    """

    memory: NoveltyMemory
    templates: dict[str, TemplateNovelty]
    turns: list[Turn] = field(default_factory=list)
    _sections: dict[str, NoveltyEvidence] = field(default_factory=dict)

    def learn(self, visit: Visit, found: Iterable[Url], books: OpicBatch) -> None:
        """Take in a first look. found: pages that it made known, and that are not held back."""
        novelty = self._novelty_of(visit, books)
        if novelty is None:
            return
        template = self._group(visit.target.url)
        if self.memory.learn_names(visit.target.url, novelty):
            return  # its parameter is to blame, and no template
        others = {group for group in map(self._group, found) if section_of(group) != section_of(template)}
        hope = max((LINKS_WORTH * self._share(other) for other in others), default=0.0)
        known = self._of(template)
        known.learn(max(novelty, hope))
        self._sections.pop(section_of(template), None)
        if self._is_barren(template, known) != known.is_held:
            self._turn(visit.target.url, known, visit.at)

    def _novelty_of(self, visit: Visit, books: OpicBatch) -> float | None:
        """What a first look brought, 0 to 1; None if it says nothing of its template."""
        if visit.target.state is not State.NEW:
            return None
        if visit.sample is not None:
            return self.memory.novelty_of(visit.sample)
        if visit.state is State.GONE or visit.status in (404, 410):
            return 0.0 if visit.target.depth else None  # a dead seed says nothing of where links lead
        if visit.signals is not None:
            return None  # perhaps a wall, which says nothing of what is behind it
        led_to = visit.moved_to.key if visit.moved_to else visit.led_to
        stand = books.positions.get(led_to) if led_to else None
        return 0.0 if stand is not None and stand.found_at is None else None  # it leads to what was known before

    def time_of(self, url: Url, at: datetime, *, favoured: bool) -> datetime | None:
        """When a page that was just found may be asked for; None: as soon as its turn comes."""
        is_another_name = self.memory.is_another_name(url)
        if favoured:
            return None
        if is_another_name or has_repeats(url):
            self.memory.next_time = time_after(self.memory.next_time, at)
            return self.memory.next_time
        template = self._group(url)
        known = self._of(template)
        if not self._is_barren(template, known):
            return None
        if not known.is_held:
            self._turn(url, known, at)
        known.held_until = time_after(known.held_until, at)
        return known.held_until

    def share_of(self, url: Url) -> float:
        """What a first look at a page is worth by those at pages of its template, as a share of text that was new."""
        return self._share(self._group(url))

    def _turn(self, url: Url, known: TemplateNovelty, at: datetime) -> None:
        section = section_of(self._group(url))
        others = (each for name, each in self.templates.items() if each is not known and section_of(name) == section)
        if not any(other.is_held for other in others):
            self.turns.append(Turn(url, at, is_held=not known.is_held))
        if known.is_held:
            known.let_go()
        else:
            known.hold(at)
        self._sections.pop(section, None)

    def _is_barren(self, template: str, known: TemplateNovelty) -> bool:
        """Of pages that share the last group, whatever their templates, nothing is held against each other."""
        return template != ELSEWHERE and is_barren(known, self._section(section_of(template)))

    def _share(self, template: str) -> float:
        known = self.templates.get(template)
        return 1.0 if known is None else known.evidence.share(expected=1.0, lean=1.0)

    def _section(self, name: str) -> NoveltyEvidence:
        if name not in self._sections:
            of_section = (known.evidence for template, known in self.templates.items() if section_of(template) == name)
            self._sections[name] = sum(of_section, start=NO_EVIDENCE)
        return self._sections[name]

    def _group(self, url: Url) -> str:
        return group_of(url, self.templates)

    def _of(self, template: str) -> TemplateNovelty:
        """A template that has no group yet begins without evidence, and gets its number as the page is stored."""
        return self.templates.setdefault(template, TemplateNovelty(0))


def is_needed(books: OpicBatch, visits: Sequence[Visit]) -> bool:
    """Whether a batch has a first look, or makes a page known."""
    return any(
        visit.target.state is State.NEW
        or any(link.key not in books.positions for link in (*(visit.links or ()), *visit.feeds))
        or (visit.moved_to is not None and visit.moved_to.key not in books.positions)
        for visit in visits
    )


async def load(connection: Connection, domain_id: int) -> NoveltyBatch:
    """Read what is known of the domain's templates."""
    templates = {
        template: TemplateNovelty(no, NoveltyEvidence(looks, found), held_until, is_moving)
        for no, template, looks, found, held_until, is_moving in await fetch_rows(connection, TEMPLATES, (domain_id,))
        if no
    }
    return NoveltyBatch(await novelty_memory_of(connection, domain_id), templates)


async def write(
    connection: Connection, domain_id: int, batch: NoveltyBatch, *, at: datetime, handed_out: Collection[PageKey] | None
) -> None:
    """Write it back, and hold pages back that were found before, or let them go. After new pages are written.

    handed_out: pages that somebody is about to fetch; None: not known here, and the next record sees to all that.
    """
    if not all(known.no for known in batch.templates.values()):  # their groups came with their pages
        groups: dict[str, int] = dict(await fetch_rows(connection, GROUPS, (domain_id,)))
        for template, known in batch.templates.items():
            known.no = groups.get(template, 0)
    stored = [known for known in batch.templates.values() if known.no]
    for known in stored:
        if known.is_moving and handed_out is not None:
            known.is_moving = await _move(connection, domain_id, known, at=at, handed_out=handed_out)
    rows = [(each.no, each.evidence.looks, each.evidence.found, each.held_until, each.is_moving) for each in stored]
    await connection.execute(PUT_TEMPLATES, to_columns(TEMPLATE_COLUMNS, rows) | {"domain_id": domain_id})
    await put_memory(connection, domain_id, batch.memory)


async def _move(
    connection: Connection, domain_id: int, known: TemplateNovelty, *, at: datetime, handed_out: Collection[PageKey]
) -> bool:
    """Hold some of a template's pages back, or let them go; whether there may be more."""
    values: dict[str, Any] = {"domain_id": domain_id, "no": known.no, "most": MOST_MOVED}
    if known.held_until is None:
        return await execute(connection, LET_GO, values) == MOST_MOVED
    after = max(known.held_until, at)
    values |= {"after": after, "every": ASK_AGAIN_EVERY, "last": at + LONGEST_WAIT, "handed_out": list(handed_out)}
    moved = await execute(connection, HOLD, values)
    known.held_until = min(after + moved * ASK_AGAIN_EVERY, at + LONGEST_WAIT)
    return moved == MOST_MOVED or bool(await fetch_value(connection, LEFT_OUT, values))


async def groups_of(connection: Connection, domain_id: int, urls: Sequence[Url]) -> list[int]:
    """The number of each URL's group. New groups are added, as long as the domain has room for them."""
    known: dict[str, int] = dict(await fetch_rows(connection, GROUPS, (domain_id,)))
    fresh: dict[str, int] = {}
    found = []
    for url in urls:
        template = group_of(url, known)
        if template not in known and template != ELSEWHERE:
            fresh[template] = known[template] = max(known.values(), default=0) + 1
        found.append(known.get(template, 0))
    if fresh:
        values = {"domain_id": domain_id, "no": list(fresh.values()), "template": list(fresh)}
        await connection.execute(ADD_GROUPS, values)
    return found
