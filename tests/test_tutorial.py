"""The tutorial and the page of values, run as they stand: recrawl in this process, others by a shell on a free port."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.runtime.machine import find_free_port
from crawler.runtime.stack import open_crawl_database
from tests.commands import in_this_process
from tests.flows.stage import settings_of
from tests.patience import SLOW

DOCS = Path(__file__).parents[1] / "docs"
PORT = re.compile(r"\b876[56]\b")
# The server may not listen yet when the next command runs.
WAIT = "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2> /dev/null; do :; done"
DONE = "this block is done"


def read_blocks(page: str, port: int) -> list[str]:
    """Return the blocks of commands."""
    text = PORT.sub(str(port), DOCS.joinpath(page).read_text(encoding="utf-8"))
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    return [f"{block}{WAIT.format(port=port)}\n" if block.endswith("&\n") else block for block in blocks]


def run_page(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the commands of a page in a folder; return what recrawl said."""
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    home, said = folder / "copy", ""
    with (
        open_crawl_database(settings_of(home)),  # not started and stopped again for each command
        in_this_process(None, home) as recrawl,
        subprocess.Popen(["bash", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell,
    ):
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write("trap 'kill $(jobs -p)' EXIT\n")
        for block in read_blocks(page, find_free_port("tutorial")):
            if block.startswith("recrawl "):
                for line in block.splitlines():
                    done = recrawl(*shlex.split(line, comments=True)[1:])
                    assert done.code == 0, (line, done.err)
                    said += done.out
            else:
                shell.stdin.write(f"{block}echo {DONE}\n")
                shell.stdin.flush()
                assert shell.stdout.readline() == f"{DONE}\n", block
        shell.stdin.close()
    return said


@SLOW
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run_page("tutorial.md", tmp_path, monkeypatch)

    assert re.search(r"^Added +4 \(", said, re.MULTILINE)
    assert "A basket of pears costs 4 crowns this week." in said
    assert "[-4-]{+5+}" in said
    assert "[-quinces" not in said
    assert list((tmp_path / "report").glob("*.html"))


@SLOW
def test_price_is_told_below_forty_as_the_page_of_values_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run_page("values.md", tmp_path, monkeypatch)

    assert re.search(r"^Value price +44\.90 EUR$", said, re.MULTILINE)
    assert [line.split()[0] for line in said.splitlines() if line.startswith("price ")] == ["price", "price"]
    message = (tmp_path / "messages.json").read_text(encoding="utf-8")
    assert "price 39.90 EUR, below 40 (it was 44.90 EUR)" in message
    assert message.count('"type": "recrawl.changes"') == 1
