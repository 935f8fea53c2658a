"""A crawl restarts the embedded Postgres after a kill and continues."""

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from crawler.runtime.postgres.cluster import borrow_postgres, find_running_postgres
from tests.commands import RECRAWL, environ, serving
from tests.patience import PATIENCE_S, SLOW, until
from tests.runtime.test_postgres import ask, home

__all__ = ["home"]

PAGES = 100


def kill_postgres(home: Path) -> int:
    cluster = find_running_postgres(home)
    assert cluster is not None
    os.kill(cluster.pid, signal.SIGKILL)
    return cluster.pid


@pytest.mark.soak
@SLOW
def test_crawl_restarts_a_killed_postgres_and_succeeds(home: Path) -> None:
    with serving() as site:
        site.page("/", *(f"/{n}" for n in range(PAGES)))
        for n in range(PAGES):
            site.page(f"/{n}", text=f"page {n} has words of its own")
        command = (RECRAWL, "crawl", site.url, "--allow-private", "--delay", "0.1")
        crawl = subprocess.Popen(
            command, env=environ(None, home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until(lambda: len(site.asked) > PAGES // 4)
        killed = kill_postgres(home)
        until(lambda: find_running_postgres(home) or crawl.poll() is not None)
        assert kill_postgres(home) != killed
        said, complained = crawl.communicate(timeout=PATIENCE_S)
        asked = Counter(site.asked)

    assert crawl.returncode == 0, complained
    assert "Traceback" not in complained
    assert "postgres.restarted" in complained
    assert all(asked[f"/{n}"] >= 1 for n in range(PAGES))
    assert find_running_postgres(home) is None  # the last user has stopped it
    with borrow_postgres(home) as again:
        assert ask(again, "SELECT count(*) FROM page WHERE version = 1", "crawl") == [(PAGES + 1,)], said
