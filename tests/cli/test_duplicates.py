"""recrawl duplicates."""

import pytest

from tests.commands import Recrawl, Site

TEXT = " ".join(f"word{n}" for n in range(100))


@pytest.fixture
def crawled(recrawl: Recrawl, site: Site) -> Site:
    """Return a site with six similar pages, three that differ, and one with hardly any text."""
    same, other = [f"/same/{n}" for n in range(6)], [f"/other/{n}" for n in range(3)]
    site.page("/", *same, *other, "/short")
    for path in same:
        site.page(path, text=TEXT)
    for path in other:
        site.page(path, text=TEXT[::-1])
    site.page("/short", text="Loading")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    return site


def test_groups_come_by_size_with_a_few_pages_of_each(recrawl: Recrawl, crawled: Site) -> None:
    told = recrawl("duplicates", crawled.name)
    found = recrawl("duplicates", "--json").json
    one = recrawl("duplicates", crawled.name, "--limit", "1", "--max-distance", "0", "--json").json

    assert told.code == 0
    assert [line.split()[0] for line in told.out.splitlines() if line.split()[0] in {"6", "3"}] == ["6", "3"]
    assert told.out.count("/same/") == 5
    assert "and 1 more page\n" in told.out
    assert "short" not in told.out
    assert [(group["domain"], group["pages"], len(group["members"])) for group in found["groups"]] == [
        (crawled.name, 6, 6),
        (crawled.name, 3, 3),
    ]
    assert {page["bits"] for group in found["groups"] for page in group["members"]} == {0}
    assert (found["bits"], found["more"]) == (3, False)
    assert (len(one["groups"]), one["bits"], one["more"]) == (1, 0, True)


def test_near_duplicates_of_one_page_are_listed(recrawl: Recrawl, crawled: Site) -> None:
    told = recrawl("duplicates", f"{crawled.url}other/1")
    found = recrawl("duplicates", f"{crawled.url}other/1", "--limit", "1", "--json").json

    assert told.code == 0
    assert {line.split()[1] for line in told.out.splitlines()[2:]} == {f"{crawled.url}other/{n}" for n in (0, 2)}
    assert found["url"] == f"{crawled.url}other/1"
    assert [page["bits"] for page in found["pages"]] == [0]
    assert found["more"]


def test_a_page_without_much_text_or_that_is_not_there_is_a_problem(recrawl: Recrawl, crawled: Site) -> None:
    for path in ("short", "nowhere"):
        told = recrawl("duplicates", f"{crawled.url}{path}")
        assert told.code == 1
        assert "was not compared" in told.out
        assert recrawl("duplicates", f"{crawled.url}{path}", "--json").json["pages"] is None


def test_without_duplicates_a_sentence_is_shown(recrawl: Recrawl, site: Site) -> None:
    site.page("/", "/one", text=TEXT)
    site.page("/one", text=TEXT[::-1])
    recrawl("crawl", site.url, "--allow-private")

    assert recrawl("duplicates").out == "There are no near-duplicate pages\n"
    assert recrawl("duplicates", f"{site.url}one").out == f"{site.url}one has no near duplicates\n"
    assert recrawl("duplicates", "--json").json == {"bits": 3, "groups": [], "more": False}


def test_invalid_arguments_are_errors(recrawl: Recrawl) -> None:
    unknown = recrawl("duplicates", "a.test")
    too_far = recrawl("duplicates", "--max-distance", "4")

    assert (unknown.code, too_far.code) == (2, 2)
    assert "a.test is not registered" in unknown.complaint
    assert "--max-distance" in too_far.complaint
