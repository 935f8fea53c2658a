"""Tags of domains: list them, give them to domains, and change their settings, which their domains inherit."""

from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches

from crawler.app.action_log import compare_settings, describe_action, recorded
from crawler.app.database import AppDatabase
from crawler.app.registration import get_domains
from crawler.app.settings import (
    BY_NAME,
    SettingsPatch,
    describe_values,
    get_option_name,
    parse_setting_names,
    require_permitted,
)
from crawler.core.domain import Domain
from crawler.core.tags import UNTAGGED_SETTINGS, LayeredSettings, Tag, parse_tag
from crawler.errors import BadInput, NotFound
from crawler.plugins import require_policy
from crawler.store import tags
from crawler.store.domain_settings import check_settings, merge_layers
from crawler.store.tags import TagSummary


def parse_tags(names: Sequence[str]) -> list[str]:
    """Return the names of tags without duplicates, in order. Raises BadInput."""
    try:
        return sorted({parse_tag(name.strip()) for name in names})
    except ValueError as error:
        raise BadInput(str(error), field="tags") from error


async def find_or_make_tags(db: AppDatabase, names: Sequence[str]) -> list[Tag]:
    """Return the tags with these names; one that does not exist has no settings. Raises BadInput."""
    parsed = parse_tags(names)
    known = {each.tag.name: each.tag for each in await tags.list_tags(db, parsed)} if parsed else {}
    return [known.get(name) or Tag(name) for name in parsed]


async def list_tags(db: AppDatabase) -> list[TagSummary]:
    """Return all tags by name."""
    return await tags.list_tags(db)


async def get_tag(db: AppDatabase, name: str) -> TagSummary:
    """Return a tag. Raises BadInput, and NotFound if there is none."""
    (parsed,) = parse_tags([name])
    listed = await tags.list_tags(db, [parsed])
    if not listed:
        similar = get_close_matches(parsed, [each.tag.name for each in await tags.list_tags(db)], n=1)
        hint = f"did you mean {similar[0]}?" if similar else "to list the tags: recrawl tags list"
        raise NotFound(f"there is no tag {parsed}; {hint}", field="tag")
    return listed[0]


async def find_tagged_domains(db: AppDatabase, name: str) -> list[Domain]:
    """Return the domains with a tag by name. Raises as `get_tag` does."""
    return await tags.find_tagged_domains(db, (await get_tag(db, name)).tag.name)


async def add_tagged_names(db: AppDatabase, names: Sequence[str], tag: str | None) -> list[str]:
    """Return names of domains, and those of the domains with a tag. Raises BadInput if no domain has the tag."""
    if not tag:
        return list(names)
    tagged = [domain.authority for domain in await find_tagged_domains(db, tag)]
    if not tagged:
        raise BadInput(f"no domain has the tag {tag}: recrawl tags add {tag} DOMAIN", field="tag")
    return [*names, *tagged]


@recorded("change tags", "add", "remove")
async def change_tags(
    db: AppDatabase, names: Sequence[str], *, add: Sequence[str] = (), remove: Sequence[str] = (), at: datetime
) -> list[Domain]:
    """Add tags to domains and remove others; return the domains. A tag that does not exist is created.

    Raises BadInput, without any change, also if two tags of a domain set a setting differently.
    """
    added, removed = parse_tags(add), parse_tags(remove)
    if both := set(added) & set(removed):
        raise BadInput(f"{', '.join(sorted(both))} cannot be both added and removed", field="tags")
    for name in removed:
        await get_tag(db, name)
    await _require_permitted(db, [*added, *removed])
    selected = await get_domains(db, names)
    changed = await tags.change_tags(db, selected, add=added, remove=removed, at=at)
    describe_action(is_change=[domain.tags for domain in selected] != [domain.tags for domain in changed])
    return changed


@recorded("change tags")
async def set_tags(db: AppDatabase, domain: Domain, names: Sequence[str], *, at: datetime) -> Domain:
    """Give a domain these tags and no others; return it. Raises as `change_tags` does."""
    wanted, before = parse_tags(names), [tag.name for tag in domain.tags]
    removed = [name for name in before if name not in wanted]
    await _require_permitted(db, [*removed, *(name for name in wanted if name not in before)])
    describe_action(old=", ".join(before), new=", ".join(wanted), is_change=sorted(before) != wanted)
    (changed,) = await tags.change_tags(db, [domain], add=wanted, remove=removed, at=at)
    return changed


async def _require_permitted(db: AppDatabase, names: Sequence[str]) -> None:
    """Raise NotAllowed if one of the tags has a setting that the actor may not change."""
    for tag in await find_or_make_tags(db, names):
        require_permitted(tag.values)


@recorded("change tag")
async def change_tag_settings(
    db: AppDatabase, name: str, patch: SettingsPatch, *, unset: Sequence[str] = (), at: datetime
) -> tuple[TagSummary, list[Domain]]:
    """Unset settings of a tag, then apply the patch; return the tag and its domains, which inherit the settings.

    A tag that does not exist is created. Raises BadInput, without any change, if a domain cannot have the settings.
    """
    (parsed,) = parse_tags([name])
    names = parse_setting_names(unset)
    if refused := [each for each in (*patch.values, *names) if each in UNTAGGED_SETTINGS or each not in BY_NAME]:
        option = get_option_name(BY_NAME[refused[0]]) if refused[0] in BY_NAME else refused[0]
        raise BadInput(f"a tag has no {option}: set them for each domain", field="settings")
    domain_settings = merge_layers(LayeredSettings().set_own(patch.values))
    check_settings(domain_settings)
    require_policy(domain_settings.revisit, db.settings.plugins)
    require_permitted([*patch.values, *names])
    listed = await tags.list_tags(db, [parsed])
    before = listed[0].tag if listed else Tag(parsed)
    changed = await tags.change_tag_settings(db, parsed, patch.values, unset=names, at=at)
    after = await get_tag(db, parsed)
    was, now = (merge_layers(LayeredSettings().set_own(tag.values)) for tag in (before, after.tag))
    texts = compare_settings(was, now)
    is_change = not listed or before.values != after.tag.values
    describe_action(object=parsed, old=texts["old"], new=texts["new"], is_change=is_change)
    return after, changed


@recorded("remove tag")
async def remove_tag(db: AppDatabase, name: str, *, at: datetime) -> list[Domain]:
    """Delete a tag; its domains no longer have its settings. Return them. Raises NotFound."""
    found = await get_tag(db, name)
    require_permitted(found.tag.values)
    removed = await tags.remove_tag(db, found.tag.name, at=at)
    return removed or []


def describe_tag(listed: TagSummary) -> dict[str, object]:
    """Return a tag for JSON."""
    return {"tag": listed.tag.name, "domains": list(listed.domains), "settings": describe_values(listed.tag.values)}
