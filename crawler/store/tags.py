"""Tags of domains: list them, add them to domains, and change their settings, which their domains inherit.

A transaction locks tags first, then domains by number, so that it waits for others but not they for it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg.types.json import Jsonb

from crawler.core.domain import Domain
from crawler.core.domain_settings import BY_NAME
from crawler.core.tags import MAX_TAGS, LayeredSettings, Tag
from crawler.errors import BadInput, Conflict
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import build_tag, encode_setting, find_domains
from crawler.store.domain_settings import apply_settings
from crawler.store.rows import execute, fetch_rows

LIST = """
    SELECT t.name, t.settings, ARRAY(SELECT d.authority FROM domain_tag g JOIN domain d ON d.id = g.domain_id
                                      WHERE g.tag = t.name ORDER BY d.authority)
      FROM tag t WHERE %(names)s::text[] IS NULL OR t.name = ANY(%(names)s) ORDER BY t.name
"""
CREATE = "INSERT INTO tag (name) SELECT x FROM unnest(%s::text[]) x ORDER BY x ON CONFLICT DO NOTHING"
# A change of a tag waits for the transactions that give it to a domain, and the other way round.
LOCK_TAGS = "SELECT name, settings FROM tag WHERE name = ANY(%s) ORDER BY name FOR KEY SHARE"
LOCK_TAG = "SELECT settings FROM tag WHERE name = %s FOR UPDATE"
LOCK_DOMAINS = """
    SELECT s.domain_id FROM domain_state s
     WHERE s.domain_id = ANY(%(ids)s) OR s.domain_id IN (SELECT g.domain_id FROM domain_tag g WHERE g.tag = %(tag)s)
     ORDER BY s.domain_id FOR NO KEY UPDATE
"""
ADD_TAGS = """
    INSERT INTO domain_tag (tag, domain_id)
    SELECT t, d FROM unnest(%s::text[]) t, unnest(%s::bigint[]) d ON CONFLICT DO NOTHING
"""
REMOVE_TAGS = "DELETE FROM domain_tag WHERE tag = ANY(%s) AND domain_id = ANY(%s)"
EXCEEDED = """
    SELECT min(d.authority) FROM domain_tag g JOIN domain d ON d.id = g.domain_id
     WHERE g.domain_id = ANY(%s) GROUP BY g.domain_id HAVING count(*) > %s LIMIT 1
"""
UPDATE = "UPDATE tag SET settings = %s WHERE name = %s"
SUBSCRIPTIONS = "SELECT id FROM subscription WHERE tag = %s ORDER BY id"
IS_TAGGED = "d.id IN (SELECT g.domain_id FROM domain_tag g WHERE g.tag = %s) ORDER BY d.authority"


class TagSummary(Struct, frozen=True):
    """A tag with the names of its domains."""

    tag: Tag
    domains: tuple[str, ...]


async def list_tags(db: Database, names: Collection[str] | None = None) -> list[TagSummary]:
    """Return the tags by name. names: only these; None for all."""
    rows = await fetch_rows(db, LIST, {"names": None if names is None else list(names)})
    return [TagSummary(build_tag(name, stored), tuple(domains)) for name, stored, domains in rows]


async def find_tagged_domains(db: Database, name: str) -> list[Domain]:
    """Return the domains with a tag by name."""
    return await find_domains(db, IS_TAGGED, (name,))


async def lock_tags(connection: Connection, names: Sequence[str]) -> tuple[Tag, ...]:
    """Create the tags that do not exist, and prevent changes of all until the end of the transaction; return them."""
    if not names:
        return ()
    if len(set(names)) > MAX_TAGS:
        raise BadInput(f"a domain may have at most {MAX_TAGS} tags")
    await connection.execute(CREATE, (list(names),))
    return tuple(build_tag(name, stored) for name, stored in await fetch_rows(connection, LOCK_TAGS, (list(names),)))


async def change_tags(
    db: Database, domains: Collection[Domain], *, add: Sequence[str] = (), remove: Sequence[str] = (), at: datetime
) -> list[Domain]:
    """Add tags to domains and remove others; return the domains. Settings change as if they were the domain's own.

    A tag that does not exist is created. Raise BadInput, without any change, if two tags of a domain set a setting
    differently.
    """
    ids = [domain.id for domain in domains]
    async with db.transaction() as connection:
        await lock_tags(connection, add)
        await connection.execute(LOCK_DOMAINS, {"ids": ids, "tag": None})
        await connection.execute(ADD_TAGS, (list(add), ids))
        await connection.execute(REMOVE_TAGS, (list(remove), ids))
        for (name,) in await fetch_rows(connection, EXCEEDED, (ids, MAX_TAGS)):
            raise BadInput(f"{name} would have more than {MAX_TAGS} tags: remove some first")
        return await apply_settings(connection, domains, names_domain=True, at=at)


async def change_tag_settings(
    db: Database, name: str, values: Mapping[str, Any], *, unset: Collection[str] = (), at: datetime
) -> list[Domain]:
    """Change settings of a tag, and thereby those of its domains; return these. The tag is created if it is new.

    Raise BadInput, without any change, if a domain cannot have the settings.
    """
    async with db.transaction() as connection:
        await connection.execute(CREATE, ([name],))
        ((stored,),) = await fetch_rows(connection, LOCK_TAG, (name,))
        layers = LayeredSettings(build_tag(name, stored).values).unset(unset).set_own(values)
        document = {BY_NAME[key].column: encode_setting(BY_NAME[key], value) for key, value in layers.own.items()}
        await connection.execute(UPDATE, (Jsonb(document), name))
        return await apply_settings(connection, await _lock_tagged(connection, name), names_domain=True, at=at)


async def remove_tag(db: Database, name: str, *, at: datetime) -> list[Domain] | None:
    """Delete a tag; its domains no longer have its settings. Return them, or None if there is no such tag.

    Raise Conflict if a subscription watches domains with the tag.
    """
    async with db.transaction() as connection:
        if not await fetch_rows(connection, LOCK_TAG, (name,)):
            return None
        if numbers := [str(number) for (number,) in await fetch_rows(connection, SUBSCRIPTIONS, (name,))]:
            kind = "subscription" if len(numbers) == 1 else "subscriptions"
            raise Conflict(
                f"{kind} {', '.join(numbers)} watch domains with the tag {name}: change or remove them first"
            )
        domains = await _lock_tagged(connection, name)
        await execute(connection, "DELETE FROM tag WHERE name = %s", (name,))
        return await apply_settings(connection, domains, names_domain=True, at=at)


async def _lock_tagged(connection: Connection, name: str) -> list[Domain]:
    rows = await fetch_rows(connection, LOCK_DOMAINS, {"ids": [], "tag": name})
    return await find_domains(connection, "d.id = ANY(%s) ORDER BY d.id", ([domain_id for (domain_id,) in rows],))
