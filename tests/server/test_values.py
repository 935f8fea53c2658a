"""The form that adds a value, its chart on the page, and the way from there to a threshold."""

import json
from pathlib import Path

from pydantic import SecretStr

from crawler.app.blocks import BlockPickRequest, PickAction, read_blocks
from crawler.app.database import open_configured_database
from crawler.app.registration import get_domain
from crawler.core.http.urls import Url
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.settings import Settings
from tests.commands import Answer, Recrawl, Site
from tests.server.conftest import Visitor

WORDS = "".join(
    f"<p>Paragraph {n} says at some length what a kettle is good for, and why number {n}." for n in range(5)
)
SCRIPT = (
    '<script type="application/ld+json">{"@type": "Product", "offers": {"price": %s, "priceCurrency": "EUR"}}</script>'
)


def sell(site: Site, price: str) -> None:
    body = f"<html lang=en><title>Kettle</title>{SCRIPT % price}<h1>Kettle</h1>{WORDS}<p class=price>€{price}</p>"
    site.answers["/one"] = Answer(body.encode())


def test_price_is_tracked_and_told_below_forty(
    crawled: Site, recrawl: Recrawl, visitor: Visitor, tmp_path: Path
) -> None:
    site, url = crawled, f"{crawled.url}one"
    sell(site, "44.90")
    recrawl("refresh", site.name)
    recrawl("crawl", site.name)
    form = visitor.get(f"/values?url={url}")
    assert "44.90 EUR jsonld:offers.price" in form.words
    seen = visitor.get(f"/values?url={url}&selector=.price")
    assert "The stored version of the page has: 44.90 € , read from “ €44.90 ”." in seen.words
    done = visitor.send("/values/add", url=url, selector=".price", name="price", pattern="/one$", unit="EUR", mark="")
    assert "The value price is read from now on" in done.words
    assert recrawl("rules", "list", site.name, "--json").json["rules"][0]["values"] == ["price:EUR .price"]

    recrawl("crawl", site.name)  # the page is the same: it is due because of the new rule
    page = visitor.get(f"/page?url={url}")
    assert "Value: price" in page.words
    assert "44.90 EUR since" in page.words
    assert f"/notifications/edit?page={url.replace(':', '%3A').replace('/', '%2F')}&amp;value_name=price" in page.text
    received = tmp_path / "received"
    wanted = ("--page", url, "--value", "price", "--below", "40")
    subscribed = recrawl("notify", "add", f"command:{write_script(tmp_path, received)}", *wanted)
    assert f"changes of {url}: when price is below 40" in subscribed.out
    for price in ("39.90", "38.00"):
        sell(site, price)
        recrawl("refresh", site.name)
        recrawl("crawl", site.name)
        recrawl("notify", "run")
    (message,) = map(json.loads, received.read_text().splitlines())
    (change,) = message["changes"]
    assert (change["value"]["was"], change["value"]["now"]) == (44.9, 39.9)
    page = visitor.get(f"/page?url={url}")
    assert "38 EUR since" in page.words
    assert "before that 39.90 EUR" in page.words
    assert page.text.count('<svg viewBox="') == 2

    readings = recrawl("values", url, "--json").json["values"]
    assert [(each["name"], each["number"], each["unit"]) for each in readings] == [
        ("price", 38.0, "EUR"),
        ("price", 39.9, "EUR"),
        ("price", 44.9, "EUR"),
    ]
    assert "39.90 EUR" in recrawl("values", url).out
    assert recrawl("values", url, "--name", "other").out == f"No value of {url} has been read yet: recrawl rules list\n"
    changes = recrawl("changes", site.name, "--kind", "value", "--json").json["changes"]
    assert [(change["value"]["was"], change["value"]["now"]) for change in changes] == [
        (None, 44.9),
        (44.9, 39.9),
        (39.9, 38.0),
    ]
    assert "Value price" in recrawl("try", url).out
    (tried,) = recrawl("try", url, "--json").json["values"]
    assert (tried["name"], tried["number"], tried["text"]) == ("price", 38.0, "€38.00")

    done = visitor.send("/values/remove", url=url, name="price", pattern="/one$")
    assert "The value price is no longer read." in done.words
    assert "No rule reads it any more." in done.words
    assert recrawl("rules", "list", site.name, "--json").json["rules"] == []


def write_script(folder: Path, received: Path) -> Path:
    script = folder / "receive.sh"
    script.write_text(f"#!/bin/sh\n(cat; echo) >> {received}\n")
    script.chmod(0o755)
    return script


def test_block_is_picked_as_a_value(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    url = f"{crawled.url}one"
    sell(crawled, "44.90")
    recrawl("refresh", crawled.name)
    recrawl("crawl", crawled.name)
    blocks = visitor.get(f"/blocks?url={url}").text.split('name="block"')
    number = next(n for n, block in enumerate(blocks) if "44.90" in block)
    seen = visitor.get(f"/blocks?url={url}&block={number}&action=values")
    assert seen.status == 303
    assert "44.90 €" in visitor.get(seen.headers["location"]).words


async def test_picked_element_is_parsed_in_another_process(crawled: Site, database_url: str, tmp_path: Path) -> None:
    settings, url = Settings(home=tmp_path, database_url=SecretStr(database_url)), Url(f"{crawled.url}one")
    picks = BlockPickRequest(picked=4), BlockPickRequest(block=2, action=PickAction.WATCH)
    async with open_configured_database(settings) as db:
        domain = await get_domain(db, url)
        for pick in picks:
            async with ParserPool(1) as parsers:
                facts = await read_blocks(db, domain, url, pick, parsers=parsers)
                assert facts is not None
                assert facts.element or facts.text, pick
                assert parsers.pids, pick


def test_form_says_what_is_wrong(crawled: Site, recrawl: Recrawl, visitor: Visitor) -> None:
    url = f"{crawled.url}one"
    assert "is not a CSS selector" in visitor.get(f"/values?url={url}&selector=.a[").words
    assert "nothing on the page matches" in visitor.get(f"/values?url={url}&selector=.nothing").words
    for name in ("", "2nd", "a b"):
        seen = visitor.send("/values/add", url=url, selector=".price", name=name, pattern="/one$")
        assert "read from now on" not in seen.words
    seen = visitor.send("/values/add", url=url, selector=".price", name="price", pattern="one")
    assert "must begin with" in seen.words
    seen = visitor.send("/values/remove", url=url, name="price", pattern="/one$")
    assert "no rule for /one$ reads the value price" in seen.words
    refused = recrawl("rules", "add", crawled.name, "/one$", "--value", "price xpath://p")
    assert refused.code == 2
    assert "a value needs a CSS selector" in refused.complaint
    for wrong in (
        ("--change-by", "5%"),
        ("--value", "price", "--match", "x"),
        ("--value", "price", "--change-by", "5"),
    ):
        assert recrawl("notify", "add", "https://hook.example.com/", *wrong).code == 2
