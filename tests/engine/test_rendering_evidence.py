"""Pages are rendered if their HTML shows that a part is missing, after they are stored, at first one of each kind."""

import json
import mimetypes
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from crawler.core.domain import Domain
from crawler.store.database import Database
from crawler.store.report import check_invariants
from tests.engine.corpus import corpus
from tests.engine.crawls import DAY, START, answered, answering, crawl, recrawl, register, rows, versions
from tests.engine.react_app import built_app
from tests.engine.static import StaticServer
from tests.engine.test_rendering import (  # noqa: F401  the fixture skips if there is no browser
    NAMES,
    SHELL,
    _with_a_browser,
    renders,
    say,
    text_of,
    write,
    write_app,
    write_static,
)

MINERALS = ("agate", "beryl", "calcite", "diamond", "epidote", "fluorite", "galena", "halite")
LIST = """
const list = document.querySelector('#items'), name = location.pathname.split('/').pop().split('.')[0];
fetch('/data/' + name + '.json').then(r => r.json()).then(items => {
  for (const item of items) list.insertAdjacentHTML('beforeend', `<li><a href="/item/${item}.html">${item}</a></li>`);
});
"""


async def words(db: Database, domain: Domain, path: str) -> list[str]:
    """Return how a page was treated in each of its visits, in order."""
    found = await rows(
        db,
        "SELECT v.rendering FROM visit v JOIN page p USING (domain_id, key) WHERE p.url = %s ORDER BY v.at",
        domain.root + path.removeprefix("/"),
    )
    return [word for (word,) in found]


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_application_built_with_react_is_found_completely(db: Database) -> None:
    """The server sends the same shell for every path, as hosts of such applications do."""
    app = built_app()
    data = {
        "/api/products.json": [{"id": n, "name": name} for n, name in enumerate(MINERALS)],
        **{f"/api/products/{n}.json": {"name": name, "text": say(name)} for n, name in enumerate(MINERALS)},
    }

    def respond(path: str) -> bytes:
        file = app / path.lstrip("/")
        if path in data:
            kind, body = "application/json", json.dumps(data[path]).encode()
        elif path == "/robots.txt":
            return b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"
        else:
            file = file if file.is_file() else app / "index.html"
            kind, body = mimetypes.guess_type(file.name)[0] or "", file.read_bytes()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async with answering(respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START)

    paths = {"/", "/products", "/about", *(f"/products/{n}" for n in range(len(MINERALS)))}
    assert set(await versions(db, domain)) == paths
    assert "minerals by mail" in await text_of(db, domain, "/")
    assert "two geologists" in await text_of(db, domain, "/about")
    for n, name in enumerate(MINERALS):
        assert say(name) in await text_of(db, domain, f"/products/{n}")
    assert not await check_invariants(db)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_documentation_with_scripts_is_crawled_without_a_browser(db: Database) -> None:
    with StaticServer(corpus("python3.11-doc")) as server:
        await register(db, server.url)
        result = await crawl(db, at=START)

    assert result.stats.visits > 500
    assert result.stats.rendered == 0


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_list_that_a_script_fills_under_static_text_is_found(db: Database, tmp_path: Path) -> None:
    write(tmp_path, "list.js", LIST)
    write_static(tmp_path, NAMES[:4])
    for n, name in enumerate(NAMES[:6]):
        items = [f"{name}-{item}" for item in MINERALS[:3]]
        write(tmp_path, f"data/{name}.json", json.dumps(items))
        for item in items:
            write(tmp_path, f"item/{item}.html", f"<title>{item}</title><p>{say(item)}")
        text = f"<header>{say(name, 'shop')}</header><main><h1>{name}</h1><p>{say(name)} {say(name, 'next')}</p>"
        following = f"<a href=/list/{NAMES[(n + 1) % 6]}.html>more</a>"
        page = f"<title>{name}</title>{text}<ul id=items></ul></main>{following}<script src=/list.js></script>"
        write(tmp_path, f"list/{name}.html", page)
    write(tmp_path, "index.html", "<a href=/list/amber.html>list</a> <a href=/doc/amber.html>docs</a>")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        await crawl(db, at=START)

    found = set(await versions(db, domain))
    assert {f"/item/{name}-{item}.html" for name in NAMES[:6] for item in MINERALS[:3]} <= found
    done = await renders(db)
    assert done["list", "probe"] == 2  # the second one confirms the first
    assert done["list", "needed"] == 4
    assert {word for folder, word in done if folder == "doc"} == {"no_signs"}


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_application_among_static_pages_of_its_template_is_rendered_alone(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:3])
    write_static(tmp_path, NAMES[:8], folder=".")
    app = SHELL.replace("/app.js", "/one.js")
    write(tmp_path, "one.js", f"document.querySelector('#app').textContent = {json.dumps(say('wonder'))}")
    write(tmp_path, "tool.html", app)
    write(tmp_path, "index.html", "<a href=/amber.html>docs</a> <a href=/tool.html>tool</a>")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        result = await crawl(db, at=START)

    assert say("wonder") in await text_of(db, domain, "/tool.html")
    assert await words(db, domain, "/tool.html") == ["awaited", "probe"]
    assert result.stats.rendered == 1


@pytest.mark.timeout(300)
@pytest.mark.soak
async def test_pages_that_gain_nothing_cost_two_renders_of_a_template(db: Database, tmp_path: Path) -> None:
    """A gallery has as little text as the shell of an application; eight fetch workers fetch it at once."""
    write(tmp_path, "nice.js", "document.body.classList.add('nice')")
    for name in NAMES:
        page = f"<title>{name}</title><p>Picture of {name}<img src=/{name}.png><script src=/nice.js></script>"
        write(tmp_path, f"gallery/{name}.html", page)
    write(tmp_path, "index.html", "".join(f"<a href=/gallery/{name}.html>{name}</a> " for name in NAMES))
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        await crawl(db, at=START)
        first = Counter(await renders(db))
        await recrawl(db, domain, at=START + DAY)

    assert 1 <= first["gallery", "probe"] <= 2
    assert first["gallery", "needed"] == 0
    assert (await renders(db))["gallery", "probe"] == 2
    assert not await check_invariants(db)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_banner_that_scripts_add_everywhere_costs_two_renders_of_a_template(db: Database, tmp_path: Path) -> None:
    banner = "We use cookies to make this site better for you and for all of us, and we ask you to agree."
    write(tmp_path, "banner.js", f"document.querySelector('#note').textContent = {json.dumps(banner)}")
    for n, name in enumerate(NAMES):
        following = f"<a href=/doc/{NAMES[(n + 1) % len(NAMES)]}.html>more</a>"
        text = f"<main><p>{say(name)} {say(name, 'next')}</p>{following}</main><div id=note></div>"
        write(tmp_path, f"doc/{name}.html", f"<title>{name}</title>{text}<script src=/banner.js></script>")
    write(tmp_path, "index.html", "<a href=/doc/amber.html>docs</a>")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url)
        await crawl(db, at=START)
        await recrawl(db, domain, at=START + DAY)

    done = await renders(db)
    assert done["doc", "probe"] == 2
    assert done["doc", "needed"] <= 1  # the page that was thought to need it


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_raw_copies_are_replaced_when_their_template_needs_a_browser(db: Database, tmp_path: Path) -> None:
    """All pages are known at once, and most of them are stored before the first probe ends."""
    write_app(tmp_path, NAMES)
    with StaticServer(tmp_path) as server:
        seeds = tuple(f"{server.url}/app/{name}/" for name in NAMES)
        domain = await register(db, server.url, seeds=seeds)
        await crawl(db, at=START)

    for name in NAMES:
        assert say(name) in await text_of(db, domain, f"/app/{name}/")
    assert not await rows(db, "SELECT FROM event WHERE change = 'changed'")
    assert not await rows(db, "SELECT FROM frontier WHERE request_reason <> 0")
    assert not await check_invariants(db)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_page_whose_crawl_ended_before_its_probe_is_probed_by_the_next(db: Database, tmp_path: Path) -> None:
    write_app(tmp_path, NAMES[:3])
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        await crawl(db, at=START, pages=2)  # including the front page, which is missing
        assert await words(db, domain, "/app/amber/") == ["awaited"]
        await crawl(db, at=START + timedelta(minutes=1))

    assert await words(db, domain, "/app/amber/") == ["awaited", "probe"]
    assert say("cedar") in await text_of(db, domain, "/app/cedar/")


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_gallery_beside_an_application_costs_two_renders(db: Database, tmp_path: Path) -> None:
    """Both have almost no text without scripts, and only one has more with them."""
    write_app(tmp_path, NAMES[:4])
    write(tmp_path, "nice.js", "document.body.classList.add('nice')")
    for name in NAMES:
        page = f"<title>{name}</title><p>Picture of {name}<img src=/{name}.png><script src=/nice.js></script>"
        write(tmp_path, f"gallery/{name}.html", page)
    pictures = "".join(f"<a href=/gallery/{name}.html>{name}</a> " for name in NAMES)
    write(tmp_path, "data/dune.json", json.dumps({"title": "dune", "text": say("dune"), "links": ["/pictures.html"]}))
    write(tmp_path, "pictures.html", f"<title>Pictures</title>{pictures}")
    with StaticServer(tmp_path) as server:
        domain = await register(db, server.url, seeds=(f"{server.url}/app/amber/",))
        await crawl(db, at=START)

    assert {f"/gallery/{name}.html" for name in NAMES} <= set(await versions(db, domain))
    done = await renders(db)
    assert done["app", "probe"] == 4
    assert 1 <= done["gallery", "probe"] + done["gallery", "needed"] <= 2


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_error_pages_with_a_script_and_status_200_are_no_trap(db: Database) -> None:
    """Each step along the relative links has another template, so a probe of one does not apply to the next."""
    links = "".join(f"<a href={name}/>{name}</a> " for name in ("news", "offers", "help", "contact"))
    tale = "<title>{0}</title><p>{1} {2}</p><a href=/tale/{3}>more</a>"

    def respond(path: str) -> bytes:
        if path == "/robots.txt":
            return answered(404, b"")
        if path == "/":
            body = (
                f"<title>Start</title><p>{say('amber')} {say('beryl')}</p><a href=/tale/1>1</a><a href=/shop/a/>s</a>"
            )
        elif path.startswith("/tale/"):
            n = int(path.removeprefix("/tale/"))
            body = tale.format(n, say(NAMES[n]), say(NAMES[n], "next"), min(n + 1, 8))
        else:
            text = f"Sorry, we could not find {path} on this server. Try our start page or one of these."
            body = f"<title>Not found</title><p>{text}</p>{links}<script>1</script>"
        return answered(200, body.encode())

    async with answering(respond) as url:
        domain = await register(db, url)
        await crawl(db, at=START, pages=120)
        await crawl(db, at=START + DAY, pages=120)

    found = await rows(db, "SELECT state, count(*) FROM page JOIN frontier USING (domain_id, key) GROUP BY 1")
    assert {"/", *(f"/tale/{n}" for n in range(1, 9))} <= set(await versions(db, domain))
    known = dict(found)
    assert "unfetched" not in known
    assert known["fetched"] <= 9 + 8  # fetch workers fetch some more pages before the response to the probe
    assert not await check_invariants(db)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_application_whose_first_page_gains_nothing_is_found_completely(db: Database, tmp_path: Path) -> None:
    """The server sends the same text for every path; it is no error page although the first render adds nothing."""
    write_app(tmp_path, NAMES[:12])
    write(tmp_path, "tales.html", "".join(f"<a href=/app/{name}/>{name}</a> " for name in NAMES[:12]))
    shell = SHELL.replace("<div id=app>", "<noscript>Please turn on scripts to read our tales.</noscript><div id=app>")
    shell += "<p>The tales of our garden, as told by its gardeners."

    def respond(path: str) -> bytes:
        file = tmp_path / path.lstrip("/")
        if path in {"/robots.txt", "/data/undefined.json"}:
            return answered(404, b"")
        is_file = file.is_file() and file.name != "index.html"
        return answered(200, file.read_bytes() if is_file else shell.encode())

    async with answering(respond) as url:
        domain = await register(db, url, seeds=(url, f"{url}tales.html"))
        await crawl(db, at=START)

    for name in NAMES[:12]:
        assert say(name) in await text_of(db, domain, f"/app/{name}/")
