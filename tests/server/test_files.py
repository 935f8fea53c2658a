"""The static files have the same figures, no forms, and only links to existing files."""

import re
from html import unescape
from pathlib import Path

from crawler.format.values import format_share
from tests.commands import Recrawl, Site
from tests.server.test_pages import edited


def test_files_link_to_each_other_and_need_no_server(crawled: Site, recrawl: Recrawl, tmp_path: Path) -> None:
    edited(crawled, recrawl)
    folder = tmp_path / "a folder" / "report"
    told = recrawl("report", "--html", str(folder), "--json").json
    files = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    assert Path(told["index"]) == folder / "index.html"
    assert told["files"] == len(files) == 3 + 3, "home, changes, one domain, three pages"
    for name, text in files.items():
        assert "<form" not in text, name
        assert "default-src 'none'; style-src 'sha256-" in text
        for address in map(unescape, re.findall(r'href="([^"]*)"', text)):
            assert address.partition("#")[0] in files or address.startswith(("#", crawled.url)), (name, address)
    (said,) = recrawl("report", "--json").json["domains"]
    assert format_share(said["freshness"]) in files["index.html"]
    assert "<del>July</del><ins>August</ins>" in files["changes.html"]
    assert any("Changes from version 1 to version 2" in text for text in files.values())


def test_unwritable_folder_gives_a_one_line_error(crawled: Site, recrawl: Recrawl, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = recrawl("report", "--html", str(tmp_path / "file" / "beneath"))
    assert done.code == 1
    assert "cannot be created" in done.complaint


def test_period_cannot_be_combined_with_html(recrawl: Recrawl, tmp_path: Path) -> None:
    done = recrawl("report", "--html", str(tmp_path / "out"), "--days", "7")
    assert done.code == 2
    assert "--days and --html cannot be combined" in done.complaint
    assert not (tmp_path / "out").exists()


def test_unregistered_domain_is_rejected(recrawl: Recrawl, tmp_path: Path) -> None:
    assert recrawl("report", "nobody.example", "--html", str(tmp_path / "out")).code == 2
    assert recrawl("report", "--html", str(tmp_path / "out")).code == 0, "the home page works without domains"
    assert "No domains yet" in (tmp_path / "out" / "index.html").read_text()
