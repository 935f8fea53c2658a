"""Tags of domains in the store, and changes of single settings by several processes."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.core.page_rules import PageRule
from crawler.core.tags import LayeredSettings, Tag
from crawler.errors import BadInput, NotFound
from crawler.store import domains, tags
from crawler.store.database import Database
from tests.store.conftest import START


async def register(db: Database, name: str, *names: str, **own: Any) -> Domain:
    layers = LayeredSettings(own, tuple(map(Tag, names)))
    return await domains.register(db, Authority(name), scheme="http", domain_settings=layers, at=START)


async def read(db: Database, domain: Domain) -> Domain:
    found = await domains.find_domain(db, domain.authority)
    assert found is not None
    return found


async def inbox(db: Database, domain: Domain) -> Counter[str]:
    async with db.transaction() as connection:
        cursor = await connection.execute("SELECT kind FROM inbox WHERE domain_id = %s", (domain.id,))
        return Counter(kind for (kind,) in await cursor.fetchall())


async def test_domains_inherit_the_settings_of_their_tags(db: Database) -> None:
    tagged, own = await register(db, "a.test", "news"), await register(db, "b.test", "news", budget_per_day=5)
    other = await register(db, "c.test", "slow")

    changed = await tags.change_tag_settings(db, "news", {"budget_per_day": 200, "render": "never"}, at=START)

    assert [each.authority for each in changed] == ["a.test", "b.test"]
    assert [(await read(db, each)).settings.budget_per_day for each in (tagged, own, other)] == [200, 5, None]
    assert [(await read(db, each)).settings.render for each in (tagged, own, other)] == ["never", "never", "auto"]
    late = await register(db, "d.test", "news", max_depth=3)
    assert late.settings == DomainSettings(budget_per_day=200, render="never", max_depth=3)
    assert late.own == {"max_depth"}
    assert late.layers.find_tag("render") == "news"


async def test_unset_values_fall_back_to_the_tag_and_then_to_the_default(db: Database) -> None:
    domain = await register(db, "a.test", "news", budget_per_day=5)
    await tags.change_tag_settings(db, "news", {"budget_per_day": 200}, at=START)

    fallen = await domains.update_settings(db, domain, lambda layers: layers.unset(["budget_per_day"]), at=START)
    assert (fallen.settings.budget_per_day, fallen.own) == (200, frozenset())

    await tags.change_tag_settings(db, "news", {}, unset=["budget_per_day"], at=START)
    assert (await read(db, domain)).settings == DomainSettings()


async def test_a_changed_tag_requests_the_same_updates_as_a_changed_domain(db: Database) -> None:
    values = {"budget_per_day": 7, "render": "never", "order": "depth", "importance_window": 3.0, "revisit": "fixed 7d"}
    tagged, own = await register(db, "a.test", "news"), await register(db, "b.test")
    untouched = await register(db, "c.test", "news", **values)
    before = await inbox(db, untouched)

    await tags.change_tag_settings(db, "news", values, at=START)
    await domains.update_settings(db, own, lambda layers: layers.set_own(values), at=START)

    expected = Counter({"seed": 1, "refresh": 1, "reorder": 1, "window": 1, "reprice": 1})
    assert await inbox(db, tagged) == await inbox(db, own) == expected
    assert await inbox(db, untouched) == before
    await tags.change_tags(db, [tagged], remove=["news"], at=START)
    assert (await inbox(db, tagged))["refresh"] == 2


async def test_a_removed_tag_leaves_its_domains_without_its_settings(db: Database) -> None:
    domain = await register(db, "a.test", "news", "slow")
    await tags.change_tag_settings(db, "news", {"budget_per_day": 200}, at=START)

    assert [each.authority for each in await tags.remove_tag(db, "news", at=START) or ()] == ["a.test"]

    found = await read(db, domain)
    assert (found.settings, [tag.name for tag in found.tags]) == (DomainSettings(), ["slow"])
    assert await tags.remove_tag(db, "news", at=START) is None
    assert [each.tag.name for each in await tags.list_tags(db)] == ["slow"]


async def test_tags_that_disagree_change_nothing(db: Database) -> None:
    one, two = await register(db, "a.test", "news"), await register(db, "b.test")
    await tags.change_tag_settings(db, "news", {"budget_per_day": 200}, at=START)
    await tags.change_tag_settings(db, "slow", {"budget_per_day": 9}, at=START)
    listed = await tags.list_tags(db)

    complaint = "a.test: its tags news and slow set 'Budget per day' differently"
    with pytest.raises(BadInput, match=complaint):
        await tags.change_tags(db, [two, one], add=["slow"], at=START)
    assert await tags.list_tags(db) == listed
    with pytest.raises(BadInput, match="its tags news and slow"):
        await register(db, "c.test", "news", "slow")
    await tags.change_tag_settings(db, "slow", {}, unset=["budget_per_day"], at=START)
    await tags.change_tags(db, [two, one], add=["slow"], at=START)
    with pytest.raises(BadInput, match=complaint):
        await tags.change_tag_settings(db, "slow", {"budget_per_day": 9}, at=START)
    assert (await read(db, one)).settings.budget_per_day == 200


async def test_a_value_that_a_domain_cannot_have_names_the_domain(db: Database) -> None:
    await register(db, "a.test", "news", ca_file="/etc/ca.pem")

    with pytest.raises(BadInput, match=r"a\.test: --ca-file and --insecure-tls"):
        await tags.change_tag_settings(db, "news", {"insecure_tls": True}, at=START)

    assert [each.tag.values for each in await tags.list_tags(db)] == [{}]


async def test_two_processes_change_settings_of_one_domain(db: Database) -> None:
    domain = await register(db, "a.test")
    stale = domain

    await domains.change_settings(db, stale, replace(stale.settings, budget_per_day=5), at=START)
    await domains.change_settings(db, stale, replace(stale.settings, max_depth=3), at=START)

    assert (await read(db, domain)).settings == DomainSettings(budget_per_day=5, max_depth=3)


async def test_concurrent_changes_of_lists_lose_nothing(db: Database) -> None:
    domain, patterns = await register(db, "a.test", "news"), [f"/{n}" for n in range(8)]

    def add(pattern: str) -> Any:
        def change(layers: LayeredSettings) -> LayeredSettings:
            return layers.set_own({"rules": (*layers.own["rules"], PageRule(pattern, once=True))})

        return domains.update_settings(db, domain, change, at=START)

    await asyncio.gather(
        *map(add, patterns),
        *(tags.change_tag_settings(db, "news", {"keep_versions": n + 1}, at=START) for n in range(4)),
        *(tags.change_tags(db, [domain], add=[f"tag{n}"], at=START) for n in range(4)),
        *(register(db, f"{n}.test", "news") for n in range(4)),
    )

    found = await read(db, domain)
    assert sorted(rule.pattern for rule in found.settings.rules) == patterns
    assert len(found.tags) == 5
    (news,) = await tags.list_tags(db, ["news"])
    assert len(news.domains) == 5
    for name in news.domains:
        each = await domains.find_domain(db, Authority(name))
        assert each is not None
        assert each.settings == each.layers.merge(), name
        assert each.settings.keep_versions == news.tag.values["keep_versions"]


async def test_an_invalid_pattern_is_rejected_even_if_another_one_is_stored(db: Database) -> None:
    domain = await register(db, "a.test", delay=timedelta(seconds=2))

    with pytest.raises(BadInput, match="must begin with"):
        await domains.update_settings(db, domain, lambda layers: layers.set_own({"include": ("docs",)}), at=START)
    await domains.remove(db, domain)
    with pytest.raises(NotFound, match="no longer registered"):
        await domains.update_settings(db, domain, lambda layers: layers, at=START)


async def test_a_domain_has_a_bounded_number_of_tags(db: Database) -> None:
    domain = await register(db, "a.test", *(f"tag{n}" for n in range(50)))

    with pytest.raises(BadInput, match="more than 50 tags"):
        await tags.change_tags(db, [domain], add=["one-more"], at=START)
