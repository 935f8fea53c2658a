"""Import of domains and pages."""

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from crawler.app.database import open_configured_database
from crawler.app.imports import DOMAINS_PER_STEP, NOT_REACHED, import_names
from crawler.app.registration import get_domain
from crawler.app.settings import SettingsPatch
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from crawler.settings import Settings
from crawler.store.domains import register

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_an_import_ends_in_time_and_names_the_rest(database_url: str, tmp_path: Path) -> None:
    names = [f"http://{n}.test/page" for n in range(DOMAINS_PER_STEP + 2)]
    steps = iter([True, False])

    async with open_configured_database(Settings(home=tmp_path, database_url=SecretStr(database_url))) as db:
        first = await import_names(
            db, names, SettingsPatch({"weight": 2.0}), offline=True, may_continue=lambda: next(steps), at=START
        )
        again = await import_names(db, names, SettingsPatch(), offline=True, at=START)
        weights = [(await get_domain(db, name)).settings.weight for name in (names[0], names[-1])]

    assert len(first.registered) == DOMAINS_PER_STEP
    assert first.failed == dict.fromkeys(names[-2:], NOT_REACHED)
    assert (len(again.registered), again.pages, again.failed) == (2, DOMAINS_PER_STEP, {})
    assert weights == [2.0, 1.0]


async def test_pages_of_an_alias_and_out_of_scope(database_url: str, tmp_path: Path) -> None:
    async with open_configured_database(Settings(home=tmp_path, database_url=SecretStr(database_url))) as db:
        await register(
            db,
            Authority("www.a.test"),
            scheme="https",
            aliases=[Authority("a.test")],
            at=START,
            domain_settings=DomainSettings(exclude=("/old/",)),
        )
        result = await import_names(
            db, ["http://a.test/one", "https://www.a.test/old/", "www.a.test"], SettingsPatch(), offline=True, at=START
        )

    assert (result.registered, result.pages) == ([], 1)
    assert "out of the scope of www.a.test (excluded)" in result.failed["https://www.a.test/old/"]
    assert "is already registered" in result.failed["www.a.test"]


async def test_a_site_that_does_not_respond_does_not_hold_up_an_import(database_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:  # accepts connections and never responds
        names, limit = [f"127.0.0.1:{hanging.getsockname()[1]}"], timedelta(seconds=0.2)
        patch = SettingsPatch({"allow_private": True})
        async with open_configured_database(Settings(home=tmp_path, database_url=SecretStr(database_url))) as db:
            result = await import_names(db, names, patch, max_probe_time=limit, at=START)

    assert result.registered == []
    assert "did not arrive within 0.2 s" in result.failed[names[0]]
