"""The public Python API: the examples of docs/python.md, and each method."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from math import nan
from pathlib import Path
from threading import Thread

import pytest

from crawler.app import (
    BadInput,
    CrawlerError,
    CursorAhead,
    DomainSettings,
    EventKind,
    NotFound,
    PageAction,
    PageOrder,
    PageQuery,
    PageRule,
    StoreUnavailable,
    SubscriptionRequest,
    open_app,
)
from tests.commands import environ
from tests.engine.static import StaticServer
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
OWN = DomainSettings(allow_private=True, delay=timedelta(0))


@dataclass(frozen=True, slots=True)
class Orchard:
    """Serve a folder of three pages."""

    root: Path
    url: str

    def write(self, name: str, title: str, text: str) -> None:
        (self.root / name).write_text(
            f"<title>{title}</title><h1>{title}</h1><p>{text}</p><a href=pears.html>Pears</a>"
        )


@pytest.fixture
def orchard(tmp_path: Path) -> Iterator[Orchard]:
    root = tmp_path / "site"
    root.mkdir()
    with StaticServer(root) as server:
        made = Orchard(root, server.url)
        made.write("index.html", "Orchard", "We grow fruit on the southern slope, and sell it at the gate.")
        made.write("pears.html", "Pears", "A basket of pears costs four crowns this week, ripe and sweet.")
        yield made


def run_examples(page: str, *, site: str, database_url: str, home: Path) -> str:
    """Run the Python blocks of a page as one program against another site; return its output."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks).replace("http://127.0.0.1:8000", site)],
        env=environ(database_url, home),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_examples_of_the_documentation_run_as_they_stand(
    database_url: str, orchard: Orchard, tmp_path: Path
) -> None:
    printed = run_examples("docs/python.md", site=orchard.url, database_url=database_url, home=tmp_path / "home")

    assert "2 visits" in printed
    assert "A basket of pears costs four crowns this week" in printed
    assert re.search(r"pears\.html.*\[basket\] of \[pears\]", printed)
    assert printed.count("added") >= 2


def test_the_example_of_the_readme_runs_as_it_stands(database_url: str, orchard: Orchard, tmp_path: Path) -> None:
    printed = run_examples("README.md", site=orchard.url, database_url=database_url, home=tmp_path / "home")

    assert "2 visits" in printed
    assert "estimated freshness 100.0% (weighted by importance), 2 pages" in printed


def test_what_changed_can_be_followed_by_a_cursor_of_ones_own(
    database_url: str, orchard: Orchard, tmp_path: Path
) -> None:
    with open_app(database_url, home=tmp_path) as app:
        [domain] = app.add(orchard.url, settings=OWN)
        app.crawl(domain.authority)
        first = list(app.changes(domain.authority))
        orchard.write("pears.html", "Pears", "A basket of pears costs nine crowns this week, ripe and sweet.")
        app.refresh(f"{orchard.url}/pears.html")
        app.crawl(domain.authority)
        [change] = app.changes(domain.authority, after=first[-1].position)
        old = app.text(f"{orchard.url}/pears.html", version=1)
        new = app.text(f"{orchard.url}/pears.html")
        numbers = [each.number for each in app.versions(f"{orchard.url}/pears.html")]
        hits = app.search("nine crown*")
        none = app.search("four crowns")
        half_read = app.changes()
        next(half_read)

        assert [each.change for each in first] == [EventKind.ADDED, EventKind.ADDED]
        assert change.change is EventKind.CHANGED
        assert change.magnitude is not None
        assert "text" in change.parts
        assert "nine crowns" in str(change.blocks[0].after)
        assert app.cursor() == change.position
        assert old is not None
        assert new is not None
        assert ("four crowns" in old.text, "nine crowns" in new.text) == (True, True)
        assert numbers == [2, 1]
        assert [hit.url for hit in hits] == [f"{orchard.url}/pears.html"]
        assert none == []
    half_read.close()  # its app is closed


def test_domains_rules_and_subscriptions_are_managed(database_url: str, orchard: Orchard, tmp_path: Path) -> None:
    with open_app(database_url, home=tmp_path) as app:
        imported = app.import_text(f"{orchard.url}\n{orchard.url}/pears.html", settings=OWN)
        [domain] = imported.registered
        app.crawl(domain.authority)
        name = domain.authority
        assert app.set(name, budget_per_day=50, exclude=("/old/",)).settings.budget_per_day == 50
        assert app.set(name, target_freshness=1e-05).settings.target_freshness == 1e-05
        for values in (
            {"weight": nan},
            {"budget_per_day": -1},
            {"delay": timedelta(-1)},
            {"include": "/a"},
            {"cookies": 1},
        ):
            with pytest.raises(BadInput, match=f"^{next(iter(values))}: "):
                app.set(name, **values)
        assert app.set(name, unset=["budget_per_day"]).settings.budget_per_day is None
        assert app.add_rule(name, PageRule("/pears", weight=5)).settings.rules[0].weight == 5
        assert app.remove_rule(name, "/pears").settings.rules == ()
        assert [each.paused for each in (*app.pause(name), *app.resume(name))] == [True, False]
        assert app.inspect(name).wait is None
        assert app.explain(f"{orchard.url}/pears.html")["tracked"]
        assert app.try_page(f"{orchard.url}/pears.html")["change"] == "unchanged"
        assert app.hint(f"{orchard.url}/pears.html").accepted == {name: 1}
        hook = app.subscribe(SubscriptionRequest(target="http://127.0.0.1:9/hook", domain=name, allow_private=True))
        assert app.change_subscription(hook.number, digest="1h", kinds="gone").kinds == ["gone"]
        assert app.pause_subscription(hook.number).paused_at is not None
        assert app.resume_subscription(hook.number).paused_at is None
        assert app.test_subscription(hook.number)
        assert (app.dead_letters(), app.redeliver(), app.discard(1)) == ([], 0, 0)
        app.unsubscribe(hook.number)
        assert app.subscriptions() == []
        assert app.reset_clock(name) == {name: None}
        app.remove(name)
        assert app.domains() == []
        for call in (partial(app.pause, name), partial(app.unsubscribe, 1), partial(app.inspect, name)):
            with pytest.raises(NotFound):
                call()
        with pytest.raises(BadInput, match="no setting 'speed'"):
            app.set(name, speed=1)
        with pytest.raises(BadInput, match="add them afterwards"):
            app.add(name, settings=DomainSettings(rules=(PageRule("/", weight=5),)))


def test_pages_are_listed_compared_and_acted_on(database_url: str, orchard: Orchard, tmp_path: Path) -> None:
    with open_app(database_url, home=tmp_path) as app:
        [domain] = app.add(orchard.url, settings=OWN)
        name, pears = domain.authority, f"{orchard.url}/pears.html"
        app.crawl(name)
        part = app.page_list(name, PageQuery(order=PageOrder.URL, words=("pears",)))
        assert [each.url for each in part.pages] == [pears]
        with pytest.raises(CrawlerError, match="only one version"):
            app.diff(pears)
        orchard.write("pears.html", "Pears", "A crate of pears costs four crowns this week, ripe and sweet.")
        app.refresh(pears)
        app.crawl(name)
        assert [each.status for each in app.diff(pears).diff.changed_blocks] == ["changed"]
        assert app.act_on_pages(name, PageAction.BOOST, pears).domain.settings.rules[0].weight == 4
        assert app.act_on_pages(name, PageAction.RECRAWL, pears, "/").pages == 2


def test_the_page_of_a_url_is_fetched_whether_it_is_due_or_not(
    database_url: str, orchard: Orchard, tmp_path: Path
) -> None:
    with open_app(database_url, home=tmp_path) as app:
        app.add(orchard.url, settings=OWN)
        first = app.crawl(orchard.url)
        nothing = app.crawl(orchard.url)
        requested = app.crawl(f"{orchard.url}/pears.html")
        with pytest.raises(BadInput, match="is not registered"):
            app.crawl(orchard.url, "https://nowhere.example/page")

    assert [result.stats.visits for result in (first, nothing, requested)] == [2, 0, 1]
    assert [list(result.idle_reasons) for result in (first, nothing)] == [[], list(first.shift.by_domain)]
    assert nothing.is_well
    assert nothing.next_due_at is not None


def test_a_follower_hears_of_a_change_when_it_is_recorded(database_url: str, orchard: Orchard, tmp_path: Path) -> None:
    heard: list[str] = []

    def follow() -> None:
        with open_app(database_url, home=tmp_path) as reader:
            for change in reader.changes(follow=True):
                heard.append(change.url)
                if len(heard) == 2:
                    return

    with open_app(database_url, home=tmp_path) as app:
        app.add(orchard.url, settings=OWN)
        thread = Thread(target=follow)
        thread.start()
        app.crawl(orchard.url)
        thread.join(PATIENCE_S)

    assert sorted(heard) == [f"{orchard.url}/", f"{orchard.url}/pears.html"]


async def test_the_same_verbs_for_asyncio(database_url: str, orchard: Orchard, tmp_path: Path) -> None:
    async with open_app(database_url, home=tmp_path) as app:
        added = await app.add(orchard.url, settings=OWN)
        again = await app.add(orchard.url)
        shift, _ = await asyncio.gather(app.crawl(orchard.url), app.domains())
        pages = [page async for page in app.pages(orchard.url, bodies=True)]
        reports = await app.freshness()

    assert [each.id for each in added] == [each.id for each in again]
    assert shift.stats.visits == 2
    assert sorted(page.title for page in pages) == ["Orchard", "Pears"]
    assert all(page.body is not None and page.body.startswith(b"<title>") for page in pages)
    assert [(report.fetched, report.freshness is not None) for report in reports] == [(2, True)]


async def test_the_event_loop_goes_on_while_a_search_brings_its_index_in_step(
    database_url: str, orchard: Orchard, tmp_path: Path
) -> None:
    async with open_app(database_url, home=tmp_path) as app:
        await app.add(orchard.url, settings=OWN)
        await app.crawl(orchard.url)
        await app.search("basket")
        orchard.write("pears.html", "Pears", "A basket of pears costs nine crowns this week, ripe and sweet.")
        await app.refresh(orchard.url)
        await app.crawl(orchard.url)
        with closing(sqlite3.connect(tmp_path / "search" / "pages.sqlite", isolation_level=None)) as somebody:
            somebody.execute("BEGIN IMMEDIATE")  # so that writers of the index wait
            asyncio.get_running_loop().call_later(0.2, somebody.execute, "ROLLBACK")
            began = asyncio.get_running_loop().time()
            first, second = await asyncio.gather(app.search("nine"), app.search("crowns"))
            took = asyncio.get_running_loop().time() - began

    assert [hit.url for hit in first + second] == [f"{orchard.url}/pears.html"] * 2
    assert took < 20  # SQLite waits for a lock for up to thirty seconds


def test_what_cannot_be_is_a_sentence(database_url: str, tmp_path: Path) -> None:
    with open_app(database_url, home=tmp_path) as app:
        with pytest.raises(CursorAhead, match="the feed ends at 0, before cursor 7"):
            list(app.changes(after=7))
        with pytest.raises(BadInput, match="is not registered"):
            list(app.changes("nowhere.example"))
        with pytest.raises(BadInput, match=r"^not a URL"):
            app.add("not a name", offline=True)
        [domain, _] = app.add("known.example", "known.example", offline=True)
        assert app.text(f"{domain.root}page") is None
        for nothing in (" ", '"', "* -"):
            with pytest.raises(BadInput, match="one to 32 words"):
                app.search(nothing)
    with pytest.raises(StoreUnavailable), open_app("postgresql://127.0.0.1:9/none"):
        pass


@pytest.mark.soak
def test_importing_it_takes_nothing_that_opening_does_not_need() -> None:
    program = (
        "import sys; from crawler.app import open_app; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert not {"httptools", "lxml", "prefect", "sqlalchemy", "alembic", "rich", "starlette"} & set(done.stdout.split())
