"""The tutorial, run as it stands: recrawl in this process, all other commands by a shell, on a free port."""

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

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
PORT = "8765"
# The server may not listen yet when the next command runs.
WAIT = "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2> /dev/null; do :; done"
DONE = "this block is done"


def read_blocks(port: int) -> list[str]:
    """Return the blocks of commands."""
    text = TUTORIAL.read_text(encoding="utf-8").replace(PORT, str(port))
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    return [f"{block}{WAIT.format(port=port)}\n" if block.endswith("&\n") else block for block in blocks]


@SLOW
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    home, said = tmp_path / "copy", ""
    with (
        open_crawl_database(settings_of(home)),  # not started and stopped again for each command
        in_this_process(None, home) as recrawl,
        subprocess.Popen(["bash", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell,
    ):
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write("trap 'kill $(jobs -p)' EXIT\n")
        for block in read_blocks(find_free_port("tutorial")):
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

    assert re.search(r"^Added +4 \(", said, re.MULTILINE)
    assert "A basket of pears costs 4 crowns this week." in said
    assert "[-4-]{+5+}" in said
    assert "[-quinces" not in said
    assert list((tmp_path / "report").glob("*.html"))
