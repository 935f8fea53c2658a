"""Histories made from real dates contain the truth that replays measure against."""

import gzip
from pathlib import Path

import pytest

from crawler.core.http.urls import Url
from crawler.core.page.lists.url_list import read_url_list
from labs.__main__ import main
from labs.replay.history import SiteHistory

ENTRY = """{package} ({version}) unstable; urgency=medium

  * {text}
    over two lines.
  - Another one of {version}.

 -- A. Writer <a@example.org>  {at}

"""
PACKAGES = {  # every second package counts; `aside` and `between` are skipped
    "aa": [("1.0-1", "Fri, 24 Jun 2022 08:00:00 +0200"), ("1.0-2", "Sat, 02 Jul 2022 12:00:00 +0000")],
    "aside": [("5-1", "Tue, 05 Jul 2022 00:00:00 +0000")],
    "be": [("2:3.1-1", "Mon, 04 Jul 2022 12:00:00 -0000")],
    "between": [("5-1", "Tue, 05 Jul 2022 00:00:00 +0000")],
    "ce": [("7-1", "Fri, 24 Jun 2022 09:00:00 +0200"), ("7-2", "no date")],
}


@pytest.fixture
def changelogs(tmp_path: Path) -> Path:
    for package, revisions in PACKAGES.items():
        folder = tmp_path / "doc" / package
        folder.mkdir(parents=True)
        texts = [ENTRY.format(package=package, version=v, text=f"News of {package} {v}", at=at) for v, at in revisions]
        (folder / "changelog.Debian.gz").write_bytes(gzip.compress("".join(reversed(texts)).encode()))
        (folder / "copyright").write_text(f"Copyright of {package}.\n\nMIT <license>.", encoding="utf-8")
    return tmp_path / "doc"


def test_an_article_appears_when_its_version_does_and_each_later_revision_updates_it(
    changelogs: Path, tmp_path: Path
) -> None:
    assert main(["history", "news", str(tmp_path / "news"), "--changelogs", str(changelogs), "--days", "10"]) == 0
    history = SiteHistory(tmp_path / "news")
    pages = history.pages

    articles = {path: (life.born, life.changes) for path, life in pages.items() if path.startswith("articles/")}
    assert articles == {
        "articles/2022/06/aa-1-0.html": (0.0, (1.5,)),
        "articles/2022/06/ce-7.html": (0.0, ()),
        "articles/2022/07/be-3-1.html": (3.5, ()),
    }
    assert pages["about/aa.html"].changes == ()
    assert pages["index.html"].changes == pages["archive/1.html"].changes == (3.5,)
    assert b"News of aa 1.0-2 over two lines." in history.body(
        history.blob_at("articles/2022/06/aa-1-0.html", 2.0) or ""
    )


def test_feed_lists_new_and_updated_articles(changelogs: Path, tmp_path: Path) -> None:
    main(["history", "news", str(tmp_path / "news"), "--changelogs", str(changelogs), "--days", "10"])
    history = SiteHistory(tmp_path / "news")

    def dates(day: float) -> dict[str, str]:
        body = history.body(history.blob_at("feed.atom", day) or "")
        found = read_url_list(body, url=Url("http://site.example/feed.atom"), content_type="application/atom+xml")
        return {entry.url.rpartition("/")[2]: str(entry.date) for entry in found.entries}

    assert dates(0.0).keys() == dates(2.0).keys() == {"aa-1-0.html", "ce-7.html"}
    assert {name for name, date in dates(2.0).items() if dates(0.0)[name] != date} == {"aa-1-0.html"}
    assert dates(4.0).keys() - dates(2.0).keys() == {"be-3-1.html"}


def test_a_folder_without_changelogs_makes_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "news", str(tmp_path / "news"), "--changelogs", str(tmp_path)]) == 2
    assert "has no Debian changelogs" in capsys.readouterr().err


@pytest.mark.soak
def test_a_release_changes_the_text_of_the_pages_that_the_record_says_and_the_template_of_all(tmp_path: Path) -> None:
    assert main(["history", "releases", str(tmp_path / "manual"), "--days", "40"]) == 0
    history = SiteHistory(tmp_path / "manual")
    pages = history.pages

    releases = {at for life in pages.values() for at in life.changes}
    always = [life for life in pages.values() if life.born == 0.0 and life.gone > history.days]
    edited = [life for life in always if life.changes]
    assert 5 < len(releases) < 30
    assert 10 < len(edited) < len(always) / 2  # the template, which each release edits, changes no page
    assert all(history.blob_at(life.path, 0.0) != history.blob_at(life.path, history.days) for life in always)


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note").write_text("mine", encoding="utf-8")

    assert main(["history", "releases", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
