"""recrawl domains set --language: the Accept-Language header that a real server receives."""

from tests.commands import Recrawl, Site

LANGUAGE = "de-AT, de;q=0.8, *;q=0"


def asked(site: Site) -> list[tuple[str, str | None]]:
    """Return each requested path with its Accept-Language since the last call."""
    found = sorted(zip(site.asked, site.languages, strict=True))
    site.asked.clear()
    site.languages.clear()
    return found


def test_every_request_of_a_domain_sends_its_language(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--delay", "0", "--language", LANGUAGE)
    assert asked(site) == [(path, LANGUAGE) for path in ("/", "/one", "/robots.txt", "/two")]

    assert recrawl("try", f"{site.url}one").code == 0
    assert asked(site) == [("/one", LANGUAGE)]


def test_without_a_language_none_is_sent(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--delay", "0")

    assert {language for _, language in asked(site)} == {None}


def test_another_language_reads_every_page_again(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--delay", "0")
    asked(site)

    recrawl("domains", "set", site.name, "--language", "fr")
    recrawl("crawl", site.name)
    shown = recrawl("domains", "show", site.name)

    assert asked(site) == [(path, "fr") for path in ("/", "/one", "/two")]
    assert "Language" in shown.out
    assert recrawl("domains", "show", site.name, "--json").json["settings"]["language"] == "fr"
