"""The list of a domain's settings agrees with the columns and the class."""

from datetime import timedelta
from typing import Any

from crawler.core.domain_settings import SETTINGS, DomainSettings, get_value, replace_values
from crawler.core.http.urls import Authority
from crawler.core.setting import Setting, SettingKind
from crawler.store import domains
from crawler.store.database import Database
from models.domain import Domain as Row
from tests.store.conftest import START

IDENTITY = {"id", "authority", "scheme", "state", "registered_at", "own_settings"}
VALUES: dict[SettingKind, Any] = {
    SettingKind.COUNT: 7,
    SettingKind.NUMBER: 0.75,
    SettingKind.FACTOR: 2.5,
    SettingKind.SHARE: 0.95,
    SettingKind.BYTES: 2**40,
    SettingKind.DELAY: timedelta(seconds=1.5),
    SettingKind.SPAN: timedelta(days=3),
    SettingKind.TEXTS: ("/a/", "/b/"),
    SettingKind.FLAG: True,
}


def another(setting: Setting) -> Any:
    """Return a value that is not the default."""
    named = {"seeds": ("http://a.test/b",), "order": "mixed", "language": "de-AT, de;q=0.8", "change_weight": "equal"}
    named |= {"revisit": "fixed 7d", "hours": "22-06 x2 Europe/Vienna", "render": "always"}
    named |= {"headers": ("X-Key: env:KEY",), "auth": "bearer env:TOKEN", "login": "/login user=env:USER"}
    named |= {"proxy": "http://proxy.test:3128", "ca_file": "/etc/ca.pem"}
    return named[setting.name] if setting.name in named else VALUES[setting.kind]


def test_the_columns_of_a_domain_match_the_settings() -> None:
    written = [setting.column for setting in SETTINGS]

    assert set(Row.__table__.columns.keys()) - IDENTITY == set(written)  # type: ignore[attr-defined]
    assert len(written) == len(set(written))


def test_the_names_of_settings_are_unique() -> None:
    for of in ("name", "key", "option"):
        said = [getattr(setting, of) for setting in SETTINGS]
        assert len(said) == len(set(said))


async def test_every_setting_is_stored_unchanged(db: Database) -> None:
    default, expected = DomainSettings(), {}
    for setting in SETTINGS:
        authority = Authority(f"{setting.name.replace('_', '-')}.test")
        said = replace_values(default, {setting.name: another(setting)})
        registered = await domains.register(db, authority, scheme="http", domain_settings=said, at=START)
        bare = await domains.change_settings(db, registered, default, at=START)
        await domains.change_settings(db, bare, said, at=START)
        assert get_value(said, setting) != get_value(default, setting), setting.name
        assert registered.settings == said, setting.name
        expected[authority] = said

    assert {each.domain.authority: each.domain.settings for each in await domains.list_domains(db)} == expected


async def test_pages_are_recrawled_in_full_for_the_settings_that_require_it(db: Database) -> None:
    settings = {}
    for setting in SETTINGS:
        authority = Authority(f"{setting.name.replace('_', '-')}.test")
        domain = await domains.register(db, authority, scheme="http", domain_settings=DomainSettings(), at=START)
        await domains.change_settings(
            db, domain, replace_values(domain.settings, {setting.name: another(setting)}), at=START
        )
        settings[domain.id] = setting

    async with db.transaction() as connection:
        cursor = await connection.execute("SELECT domain_id, count(*) FROM inbox WHERE kind = 'refresh' GROUP BY 1")
        refreshed = dict(await cursor.fetchall())
    assert {setting.name: refreshed.get(number, 0) for number, setting in settings.items()} == {
        setting.name: int(setting.needs_full_recrawl) for setting in SETTINGS
    }
