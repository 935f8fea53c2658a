"""A test that starts what tests start and never ends; test_endings.py ends its run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

from crawler.runtime.postgres.cluster import ensure_postgres
from tests.watchdog import RUN

BEGUN = "TEST_BEGUN"  # in the environment: a file that says who was started
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


def test_that_never_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        postgres = ensure_postgres(tmp_path, durable=False)
        said = {"run": os.environ[RUN], "worker": os.getpid(), "started": [stubborn.pid, postgres.pid]}
        writing = tmp_path / "begun"
        writing.write_text(json.dumps(said), encoding="utf-8")
        writing.rename(os.environ[BEGUN])
        Event().wait()
