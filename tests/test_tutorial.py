"""The tutorial, run as it stands: every command in its order, by a shell, on a free port."""

import os
import re
import subprocess
import sys
from pathlib import Path

from crawler.runtime.machine import find_free_port
from crawler.runtime.stack import open_crawl_database
from tests.flows.stage import settings_of
from tests.patience import PATIENCE_S, SLOW

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
PORT = "8765"
# The server may not listen yet when the next command runs.
WAIT = "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2> /dev/null; do :; done"


def commands(port: int) -> str:
    """All blocks of commands as one script, which ends what it has started."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    waiting = [f"{block}\n{WAIT.format(port=port)}" if block.rstrip().endswith("&") else block for block in blocks]
    return "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", *waiting]).replace(PORT, str(port))


@SLOW
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    port = find_free_port("tutorial")
    beside_python = str(Path(sys.executable).parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECRAWL_", "PREFECT_"))}
    # The embedded Postgres is not started and stopped for each command, which takes most of the time.
    with open_crawl_database(settings_of(tmp_path / "copy")):
        done = subprocess.run(
            ["bash", "-c", commands(port)],
            cwd=tmp_path,
            env=kept | {"PATH": os.pathsep.join([beside_python, os.environ["PATH"]])},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )

    said = done.stdout
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Added +4 \(", said, re.MULTILINE)
    assert "A basket of pears costs 4 crowns this week." in said
    assert "[-4-]{+5+}" in said
    assert "[-quinces" not in said
    assert list((tmp_path / "report").glob("*.html"))
