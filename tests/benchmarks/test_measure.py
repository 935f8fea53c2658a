"""The figures that the benchmarks print are those of what they ran."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.crawl import crawled
from benchmarks.measure import cpu_of_tree, measured
from benchmarks.table import table

BURN = "import time\nwhile time.process_time() < {0}: pass\n"
TWICE = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''{BURN}'''], check=True)\n{BURN}"
WALK = """
import sys, urllib.request
for path in ("", "a.html", "none.html", "picture.png", "a.html"):
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + path).read()
    except urllib.error.HTTPError:
        pass
"""


def test_processor_time_is_that_of_a_command_and_of_its_children() -> None:
    done = measured([sys.executable, "-c", TWICE.format(0.3)], os.environ)

    assert done.code == 0
    assert 0.6 <= done.cpu_s < 2
    assert done.ended - done.began >= 0.6


def test_what_a_command_says_and_how_it_ends_is_kept() -> None:
    done = measured([sys.executable, "-c", "import sys; print('out'); sys.exit('bad')"], os.environ)

    assert (done.code, done.output, done.errors) == (1, "out\n", "bad\n")


def test_processor_time_of_a_running_tree_counts_the_children_that_are_gone() -> None:
    waiting = TWICE.format(0.3) + "print('ready', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        used = cpu_of_tree(process.pid)
        process.stdin.close()

    assert 0.55 <= used < 2  # the system counts in hundredths of a second
    with pytest.raises(psutil.NoSuchProcess):
        cpu_of_tree(process.pid)


def test_pages_are_those_that_the_server_gave_and_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="a.html">a</a><a href="b.html">b</a>', encoding="utf-8")
    for name in ("a.html", "b.html", "picture.png"):
        (tmp_path / name).write_text("", encoding="utf-8")

    run = crawled("walk", tmp_path, [sys.executable, "-c", WALK, "URL"], os.environ)

    assert (run.crawler, run.pages, run.postgres_cpu_s) == ("walk", 2, 0)
    assert 0 < run.seconds < run.command_s


def test_a_crawler_that_fails_fails_the_benchmark(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("", encoding="utf-8")

    with pytest.raises(SystemExit, match="ended with 3 after 0 pages"):
        crawled("broken", tmp_path, [sys.executable, "-c", "raise SystemExit(3)", "URL"], os.environ)


def test_columns_of_a_table_stand_below_each_other() -> None:
    printed = table(("name", "n", "x"), [("a", 1170, 0.12345), ("longer", 5, 1234.5)])

    assert printed.splitlines() == [
        "name        n      x",
        "--------------------",
        "a       1,170  0.123",
        "longer      5  1,234",
    ]
