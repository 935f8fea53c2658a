"""The machine on which a benchmark runs: what it is, and how a benchmark is kept on one core of it."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from benchmarks.harness.nginx import find_nginx
from crawler.runtime.postgres.cluster import Cluster


def pin_to_one_core() -> None:
    """Keep this process, and all that it will start, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def share_cores(cluster: Cluster) -> None:
    """Let a Postgres, which may have run before this process, have the cores of this process and no others."""
    server = psutil.Process(cluster.pid)
    for process in (server, *server.children()):
        os.sched_setaffinity(process.pid, os.sched_getaffinity(0))


def described(*parts: str) -> str:
    """One line: the day, the processor, its cores, the load, and versions. parts: packages of Python, or nginx."""
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    versions = ", ".join(filter(None, map(version_of, parts)))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {cores} core{'s' if cores > 1 else ''}, load {load}; "
        f"Python {platform.python_version()}, {versions}"
    )


def processor() -> str:
    lines: Sequence[str] = ()
    if (told := Path("/proc/cpuinfo")).exists():
        lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def version_of(part: str) -> str:
    """Nothing where a package is not installed."""
    try:
        return nginx_version() if part == "nginx" else f"{part} {version(part)}"
    except PackageNotFoundError:
        return ""


def nginx_version() -> str:
    """As it says itself, "nginx/1.22.1"."""
    said = subprocess.run([find_nginx(), "-v"], capture_output=True, text=True, check=True).stderr
    return said.strip().rpartition(" ")[2]
