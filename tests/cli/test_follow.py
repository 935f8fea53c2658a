"""recrawl changes --follow: what is found comes as it is found, and a reader can go on where it was."""

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.crawl.crawls import RECRAWL, command, environ
from tests.crawl.static import StaticServer
from tests.patience import PATIENCE_S


def test_changes_come_while_somebody_crawls_and_go_on_from_a_cursor(database_url: str, tmp_path: Path) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "index.html").write_text("<title>Start</title><p>Wool costs four crowns a pound this week, and no less.")
    with StaticServer(root) as server:
        domain = server.url.removeprefix("http://")
        assert command("crawl", server.url, "--allow-private", database_url=database_url, home=tmp_path).returncode == 0
        following = subprocess.Popen(
            [str(RECRAWL), "changes", domain, "--follow", "--json", "--since", "0"],
            env=environ(database_url, tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert following.stdout is not None
            first = json.loads(following.stdout.readline())
            (root / "index.html").write_text(
                "<title>Start</title><p>Wool costs nine crowns a pound this week, and no less."
            )
            command("refresh", domain, database_url=database_url, home=tmp_path)
            assert command("crawl", domain, database_url=database_url, home=tmp_path).returncode == 0
            second = json.loads(following.stdout.readline())
        finally:
            following.send_signal(signal.SIGINT)
            code = following.wait(PATIENCE_S)

    assert code == 128 + signal.SIGINT
    assert (first["change"], second["change"]) == ("first", "changed")
    assert second["position"] == first["position"] + 1
    assert second["blocks"][0]["now"].startswith("Wool costs nine crowns")
    later = command("changes", "--since", str(first["position"]), "--json", database_url=database_url, home=tmp_path)
    assert [item["position"] for item in json.loads(later.stdout)["changes"]] == [second["position"]]


def test_what_has_no_end_cannot_have_the_first_so_many(database_url: str, tmp_path: Path) -> None:
    done = command("changes", "--follow", "--top", "3", database_url=database_url, home=tmp_path)

    assert done.returncode == 2
    assert "--follow has no end" in done.stderr
    assert os.linesep not in done.stderr.strip()
