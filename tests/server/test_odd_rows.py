"""Every page is shown even if the database has rows of another version or rows written by hand."""

from urllib.parse import urlencode

import psycopg
import pytest

from crawler.server.ui.domain_tabs import Tab
from crawler.store.report.freshness import MAX_SMALL_PAGES
from tests.commands import Recrawl, Site
from tests.patience import until
from tests.server.conftest import Visitor

RECENT = "SELECT counted_at > now() - interval '1 hour' FROM domain_figures"
ONE = "domain_id = %(domain_id)s AND key = %(key)s"
OWN = f"domain_id = %(domain_id)s AND digest IN (SELECT body_digest FROM snapshot WHERE {ONE})"
ODD = {
    "evidence of another version": f"UPDATE visit SET evidence = 'digest' WHERE {ONE}",
    "no evidence": f"UPDATE visit SET evidence = '' WHERE {ONE}",
    "a rendering of another version": f"UPDATE visit SET rendering = 'framed', added_words = 5 WHERE {ONE}",
    "a reason of another version": f"UPDATE page SET reason = 'no_such', failures = 3, status = NULL WHERE {ONE}",
    "no visit": f"DELETE FROM visit WHERE {ONE}",
    "a visit of next year": f"UPDATE visit SET at = at + interval '1 year', expected = 1, shadow_price = 0 WHERE {ONE}",
    "a failed visit": """
        INSERT INTO visit (domain_id, key, at, outcome, change, evidence, conditional, requests)
        VALUES (%(domain_id)s, %(key)s, now(), 'unreached', 'unknown', 'status', false, 1)
    """,
    "fetched but never visited": f"""
        UPDATE page SET version = 0, last_visit_at = NULL, last_good_at = NULL, status = NULL, visits = 0 WHERE {ONE}
    """,
    "visited next year": f"""
        UPDATE page SET last_visit_at = now() + interval '1 year', last_good_at = now() + interval '1 year' WHERE {ONE}
    """,
    "first seen next year": f"UPDATE page SET first_seen_at = now() + interval '1 year' WHERE {ONE}",
    "no cash": f"DELETE FROM cash WHERE {ONE}",
    "no version": f"DELETE FROM snapshot WHERE {ONE}",
    "a version that is not stored": f"UPDATE page SET version = 9 WHERE {ONE}",
    "no event": f"DELETE FROM event WHERE {ONE}",
    "no body": f"DELETE FROM content WHERE {OWN}",
    "a broken body": f"UPDATE content SET encoding = 'zstd', data = '\\x00ff' WHERE {OWN}",
    "a version of next year": f"UPDATE snapshot SET at = at + interval '1 year' WHERE {ONE}",
    "an empty text": f"UPDATE snapshot SET text = '', title = '', content_type = '' WHERE {ONE}",
    "moved to nowhere": f"UPDATE page SET moved_to = decode(repeat('ab', 16), 'hex') WHERE {ONE}",
    "moved to itself": f"UPDATE page SET moved_to = key, canonical = key WHERE {ONE}",
    "a missing prior": f"UPDATE page SET prior_no = 999 WHERE {ONE}",
    "no rate estimate": f"UPDATE page SET rate_a = 0, rate_b = 0 WHERE {ONE}",
    "never due": f"UPDATE frontier SET due_at = '9999-12-31' WHERE {ONE}",
    "due since the year 1": f"UPDATE frontier SET due_at = '0001-01-02' WHERE {ONE}",
    "unfetched but visited": f"UPDATE frontier SET state = 'unfetched', due_at = NULL WHERE {ONE}",
    "excluded without a reason": f"UPDATE frontier SET state = 'excluded' WHERE {ONE}",
    "gone without a visit": f"UPDATE frontier SET state = 'gone' WHERE {ONE}",
    "moved without a target": f"UPDATE frontier SET state = 'moved' WHERE {ONE}",
    "a list that was never fetched": """
        INSERT INTO url_list (domain_id, key, found_by, found_at) VALUES (%(domain_id)s, %(key)s, 'robots', now())
    """,
    "an unknown status": f"UPDATE page SET status = 999, failures = 40 WHERE {ONE}",
    "signals without a source": f"UPDATE page SET signals = '\\x0709' WHERE {ONE}",
}


@pytest.mark.soak
def test_pages_are_shown_with_unexpected_rows(
    site: Site, recrawl: Recrawl, visitor: Visitor, database_url: str
) -> None:
    paths = {what: "/" + what.replace(" ", "-") for what in ODD}
    site.page("/", *paths.values(), text="Each page that is linked from here is odd in a way of its own.")
    for what, path in paths.items():
        site.page(path, "/", text=f"It is said of it: {what}. Nobody has foreseen what is {what[::-1]}.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    for what, statement in ODD.items():
        url = f"{site.url}{paths[what][1:]}"
        with psycopg.connect(database_url) as connection:
            found = connection.execute("SELECT domain_id, key FROM page WHERE url = %s", (url,)).fetchone()
            assert found is not None
            connection.execute(statement.encode(), {"domain_id": found[0], "key": found[1]})
        for path in (f"/page?{urlencode({'url': url})}", *(f"/domain?name={site.name}&tab={tab.value}" for tab in Tab)):
            assert visitor.get(path).status == 200, (what, path)
        assert visitor.get(f"/blocks?{urlencode({'url': url})}").status in {200, 400}, what
    for path in ("/", "/domains", "/search?q=odd", "/changes?kind=added"):
        assert visitor.get(path).status == 200, path


def test_large_uncounted_domain_is_shown_at_once_and_counted_in_background(
    crawled: Site, visitor: Visitor, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE domain_state SET tracked = %s", (MAX_SMALL_PAGES + 1,))
        connection.execute("DELETE FROM domain_figures")
    assert "being counted" in visitor.get("/").words
    domain = f"/domain?name={crawled.name}"
    until(lambda: "for the first time" not in visitor.get(domain).words)
    assert "Pages fetched 3" in visitor.get(domain).words
    assert "being counted" not in visitor.get("/").words


def test_opening_a_domain_updates_old_figures(crawled: Site, visitor: Visitor, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE domain_state SET tracked = %s", (MAX_SMALL_PAGES + 1,))
    domain = f"/domain?name={crawled.name}"
    until(lambda: "Pages fetched 3" in visitor.get(domain).words)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE domain_figures SET counted_at = counted_at - interval '2 days'")
    assert "Pages fetched 3" in visitor.get(domain).words, "the count runs in the background"
    with psycopg.connect(database_url, autocommit=True) as connection:
        until(lambda: connection.execute(RECENT).fetchone() == (True,))
