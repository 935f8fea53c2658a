"""Pages rendered by scripts, crawled with a real browser: recognized where they need it, not rendered elsewhere."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.core.domain import Domain
from crawler.core.page_rules import PageRule
from crawler.fetch.browser import BrowserMissing, find_browser
from crawler.store import domains
from crawler.store.database import Database
from crawler.store.report import check_invariants
from tests.engine.corpus import file_in
from tests.engine.crawls import DAY, QUICK, START, crawl, page, recrawl, register, rows, versions
from tests.engine.static import StaticServer

NAMES = (
    *("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "island", "jungle", "kelp", "lagoon"),
    *("meadow", "north", "ocean", "prairie", "quarry", "river", "stone", "tundra"),
)
APP = """
const path = location.pathname.split('/')[2];
const app = new Vue({el: '#app', data: {title: '', text: '', links: []},
  template: '<main><h1>{{ title }}</h1><p>{{ text }}</p><a v-for="l in links" :href="l">{{ l }}</a></main>'});
fetch('/data/' + path + '.json').then(r => r.json()).then(d => Object.assign(app, d));
"""
SHELL = (
    "<!doctype html><title>An app</title><div id=app></div><script src=/vue.js></script><script src=/app.js></script>"
)


@pytest.fixture(autouse=True)
def _with_a_browser() -> None:
    try:
        find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))


def say(name: str, edition: str = "first") -> str:
    return " ".join(f"The {edition} {name} tells of {name[n:] or name} and of {name[::-1]}." for n in range(5))


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def write_app(root: Path, names: Sequence[str]) -> None:
    """Write a single-page application with Vue: each page links to the next two, and only its data contain links."""
    shutil.copy(file_in("libjs-vue", "usr/share/javascript/vue/vue.min.js"), root / "vue.js")
    write(root, "app.js", APP)
    for n, name in enumerate(names):
        write(root, f"app/{name}/index.html", SHELL)
        links = [f"/app/{other}/" for other in names[n + 1 : n + 3]]
        write_data(root, name, links)


def write_data(root: Path, name: str, links: list[str], edition: str = "first") -> None:
    write(root, f"data/{name}.json", json.dumps({"title": name, "text": say(name, edition), "links": links}))


def write_static(root: Path, names: Sequence[str], folder: str = "doc") -> None:
    """Write pages with a script that changes nothing that is stored."""
    write(root, "nice.js", "document.body.classList.add('nice')")
    for n, name in enumerate(names):
        following = names[(n + 1) % len(names)]
        write(
            root,
            f"{folder}/{name}.html",
            f"<title>{name}</title><main><p>{say(name)} {say(name, 'second')}"
            f"<a href={following}.html>{following}</a></main><script src=/nice.js></script>",
        )


async def renders(db: Database) -> Counter[tuple[str, str]]:
    """Return how often pages of a folder were treated in which way, by folder and outcome."""
    found = await rows(
        db,
        "SELECT split_part(p.url, '/', 4), v.rendering, count(*) FROM visit v JOIN page p USING (domain_id, key)"
        " GROUP BY 1, 2",
    )
    return Counter({(folder, word): many for folder, word, many in found})


async def text_of(db: Database, domain: Domain, path: str) -> str:
    found = await rows(
        db,
        "SELECT s.text FROM snapshot s JOIN page p ON p.domain_id = s.domain_id AND p.key = s.key"
        " AND s.number = p.version WHERE p.url = %s",
        domain.root + path.removeprefix("/"),
    )
    return str(found[0][0])


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_an_application_is_found_whole_and_a_static_site_beside_it_is_left_alone(
    db: Database, tmp_path: Path
) -> None:
    write_app(tmp_path, NAMES)
    write_static(tmp_path, NAMES)
    write(tmp_path, "index.html", "<a href=/app/amber/>app</a> <a href=/doc/amber.html>docs</a>")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        await crawl(db, at=START)
        asked = Counter(entry.path for entry in server.entries)

    found = await versions(db, domain)
    assert {path for path in found if path.startswith("/app/")} == {f"/app/{name}/" for name in NAMES}
    assert say("tundra") in await text_of(db, domain, "/app/tundra/")
    done = await renders(db)
    # Each page has its own template: the first is stored before it is rendered, the others are known to need rendering.
    assert (done["app", "awaited"], done["app", "probe"]) == (1, len(NAMES))
    assert {word for folder, word in done if folder == "doc"} == {"no_signs"}
    assert asked["/vue.js"] == asked["/app.js"] == 1
    assert asked["/data/amber.json"] == 1
    assert not await check_invariants(db)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_data_that_change_behind_an_unchanged_shell_are_noticed(db: Database, tmp_path: Path) -> None:
    """The server correctly responds with 304 for the shell, but the page changed: a validator check reveals it."""
    names = NAMES[:3]
    write_app(tmp_path, names)
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        await crawl(db, at=START)
        for day in range(1, 4):
            for name in names:
                write_data(tmp_path, name, [f"/app/{other}/" for other in names], edition=f"day {'x' * day}")
            await recrawl(db, domain, at=START + day * DAY)

        for name in names:
            assert say(name, "day xxx") in await text_of(db, domain, f"/app/{name}/")
    changes = await rows(db, "SELECT count(*) FROM visit WHERE change = 'changed'")
    assert changes[0][0] >= len(names)


@pytest.mark.soak
async def test_a_page_that_begins_to_be_rendered_has_not_changed(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:3])
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",), render="never")
        await crawl(db, at=START)
        assert await text_of(db, domain, "/app/amber/") == ""
        domain = await domains.change_settings(db, domain, replace(domain.settings, render="auto"), at=START + DAY)
        await crawl(db, at=START + DAY)

    assert say("amber") in await text_of(db, domain, "/app/amber/")
    assert (await page(db, domain, "/app/amber/"))["changes"] == 0
    assert not await rows(db, "SELECT FROM event WHERE change = 'changed'")
    assert len(await versions(db, domain)) >= 3
    assert not await check_invariants(db)


async def test_without_a_browser_pages_that_would_need_it_are_told(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:3])
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        result = await crawl(db, at=START, settings=QUICK.model_copy(update={"browser": "/no/such/browser"}))

    assert result.stats.visits
    assert (await renders(db))["app", "no_browser"] == 1
    assert await versions(db, domain)


@pytest.mark.soak
async def test_what_a_user_says_of_a_pattern_holds(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:2])
    write_static(tmp_path, NAMES[:2])
    write(tmp_path, "index.html", "<a href=/app/amber/>app</a> <a href=/doc/amber.html>docs</a>")
    with StaticServer(tmp_path) as server:
        rules = (PageRule("/app/", render="never"), PageRule("/doc/", render="always"))
        await register(db, server.url, rules=rules)
        await crawl(db, at=START)

    done = await renders(db)
    assert done["doc", "always"] == 2
    assert done["app", "never"] == 1


@pytest.mark.soak
async def test_requests_of_a_page_are_on_the_account_of_the_day(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES)
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",), budget_per_day=12)
        await crawl(db, at=START)
        sent = len(server.entries)

    spent = await rows(db, "SELECT spent_requests FROM domain_state WHERE domain_id = %s", domain.id)
    assert sent == spent[0][0] <= 12


SPIES = {
    "fetch": "fetch(there).catch(() => 0)",
    "image": "new Image().src = there",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: there}))",
    "script": "document.body.append(Object.assign(document.createElement('script'), {src: there}))",
    "style": "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: there}))",
    "prefetch": "document.head.append(Object.assign(document.createElement('link'), {rel: 'prefetch', href: there}))",
    "preconnect": (
        "document.head.append(Object.assign(document.createElement('link'), {rel: 'preconnect', href: there}))"
    ),
    "web socket": "new WebSocket(there.replace('http', 'ws'))",
    "event source": "new EventSource(there)",
    "beacon": "navigator.sendBeacon(there, 'x')",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${there}'); importScripts('${there}')`])))",
    "form": (
        "document.body.append(Object.assign(document.createElement('form'), {method: 'post', action: there}));"
        " document.forms[0].submit()"
    ),
    "location": "location = there",
    "pop-up": "open(there)",
    "redirect": "fetch('/away').catch(() => 0)",
    "ping": (
        "document.body.append(Object.assign(document.createElement('a'), {ping: there, href: '#'}));"
        " document.links[0].click()"
    ),
    "rtc": "new RTCPeerConnection({iceServers: [{urls: 'stun:' + new URL(there).host}]}).createDataChannel('x')",
}
HOSTS = ("127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")


@pytest.mark.timeout(300)
async def test_no_page_reaches_a_private_address_from_inside_the_browser(db: Database, tmp_path: Path) -> None:
    """The domain itself may be private, but other hosts that its pages request may not."""
    reached: list[str] = []

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(str(writer.get_extra_info("sockname")))
        writer.close()

    spies = [await asyncio.start_server(listen, host, 0) for host in ("0.0.0.0", "::")]
    ports = [spy.sockets[0].getsockname()[1] for spy in spies]
    everywhere = [f"http://{host}:{port}/x" for host in HOSTS for port in ports]
    for n, (name, script) in enumerate(SPIES.items()):
        # A form and a location navigate away at once, so each has its own page.
        chosen = everywhere if name not in {"form", "location"} else everywhere[n : n + 1]
        tried = "".join(f"try {{ const there = '{there}'; {script} }} catch (e) {{}}" for there in chosen)
        write(tmp_path, f"spy/{n}/index.html", f"<body><p>{say(NAMES[n])}<script>{tried}</script>")
    links = "".join(f"<a href=/spy/{n}/>{n}</a>" for n in range(len(SPIES)))
    write(tmp_path, "index.html", links)
    with StaticServer(tmp_path) as server:
        await register(db, server.url, render="always")
        await crawl(db, at=START)
        posted = [entry for entry in server.entries if entry.status == 405]
    for spy in spies:
        spy.close()

    assert (await renders(db))["spy", "always"] >= len(SPIES) - 3
    assert not reached
    assert not posted


async def test_what_robots_txt_refuses_is_not_asked_for_by_a_page_either(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:2])
    write(tmp_path, "robots.txt", "User-agent: *\nDisallow: /data/")
    with StaticServer(tmp_path) as server:
        await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        await crawl(db, at=START)
        asked = {entry.path for entry in server.entries}

    assert "/app.js" in asked
    assert not {path for path in asked if path.startswith("/data/")}


async def test_a_page_whose_data_do_not_come_has_not_changed(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:3])
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        await crawl(db, at=START)
        for name in NAMES[:3]:
            write(tmp_path, f"app/{name}/index.html", f"{SHELL}<!-- built anew -->")
        # A budget that ends in the middle of a page.
        domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=3), at=START + DAY)
        await recrawl(db, domain, at=START + DAY)

    assert say("amber") in await text_of(db, domain, "/app/amber/")
    assert (await page(db, domain, "/app/amber/"))["changes"] == 0
    assert (await renders(db))["app", "ending"] > 0


@pytest.mark.soak
async def test_a_page_whose_script_leads_elsewhere_has_moved(db: Database, tmp_path: Path) -> None:
    write(tmp_path, "index.html", "<a href=/old.html>old</a>")
    write(tmp_path, "old.html", "<title>old</title><script>location.replace('/new.html')</script>")
    write(tmp_path, "new.html", f"<title>new</title><p>{say('amber')}")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        await crawl(db, at=START)

    assert (await page(db, domain, "/old.html"))["state"] == "moved"
    assert say("amber") in await text_of(db, domain, "/new.html")


@pytest.mark.soak
async def test_a_page_that_hangs_is_looked_at_without_its_scripts(db: Database, tmp_path: Path) -> None:
    trap = f"<title>x</title><p>{say('amber')}<a href=/b.html>b</a><main></main><script>for (;;);</script>"
    write(tmp_path, "index.html", trap)
    write(tmp_path, "b.html", f"<title>b</title><p>{say('birch')}")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        settings = QUICK.model_copy(update={"render_timeout": timedelta(seconds=4)})
        await crawl(db, at=START, settings=settings)

    assert (await renders(db))["", "hung"] == 1
    assert say("amber") in await text_of(db, domain, "/")
    assert say("birch") in await text_of(db, domain, "/b.html")
