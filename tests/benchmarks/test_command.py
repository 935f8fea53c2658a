"""The benchmark harness measures commands correctly."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from benchmarks.harness.command import CommandFailed, cpu_of_tree, measured, succeeded
from benchmarks.harness.machine import described
from benchmarks.harness.table import table

BURN = "import time\nwhile time.process_time() < {0}: pass\n"
TWICE = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''{BURN}'''], check=True)\n{BURN}"


def test_cpu_time_includes_children() -> None:
    done = measured([sys.executable, "-c", TWICE.format(0.3)], os.environ)

    assert done.code == 0
    assert 0.6 <= done.cpu_s < 2
    assert done.ended - done.began >= 0.6


def test_output_and_exit_code_of_a_command_are_kept() -> None:
    done = measured([sys.executable, "-c", "import sys; print('out'); sys.exit('bad')"], os.environ)

    assert (done.code, done.output, done.errors) == (1, "out\n", "bad\n")


def test_cpu_time_of_a_running_tree_includes_ended_children() -> None:
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


def test_columns_of_a_table_are_aligned() -> None:
    printed = table(("name", "n", "x"), [("a", 1170, 0.12345), ("longer", 5, 1234.5)])

    assert printed.splitlines() == [
        "name        n      x",
        "--------------------",
        "a       1,170  0.123",
        "longer      5  1,234",
    ]


def test_memory_includes_children() -> None:
    hold = "import time\nheld = b'x' * {0} * 10**6\ntime.sleep(1)\n"
    both = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', '''{hold.format(60)}'''])\n"

    one = measured([sys.executable, "-c", hold.format(80)], os.environ)
    two = measured([sys.executable, "-c", f"{both}{hold.format(80)}child.wait()"], os.environ)

    assert 80e6 < one.peak_bytes < 130e6
    assert 140e6 < two.peak_bytes < 230e6
    assert all(two.began < sample.at < two.ended for sample in two.memory)


def test_failing_command_raises_with_the_end_of_stderr(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="ended with 3:\nno such thing"):
        succeeded([sys.executable, "-c", "import sys; sys.stderr.write('no such thing'); sys.exit(3)"], os.environ)

    done = succeeded([sys.executable, "-c", "import os; print(os.getcwd())"], os.environ, folder=tmp_path)
    assert done.output.strip() == str(tmp_path.resolve())


def test_description_of_the_machine_has_the_versions_of_installed_packages() -> None:
    description = described("psycopg", "no-such-package")

    assert f"psycopg {version('psycopg')}" in description
    assert "no-such" not in description
    assert f"{len(os.sched_getaffinity(0))} core" in description
