"""Describe the machine of a benchmark, and pin the benchmark to one core."""

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
    """Pin this process and its future children to one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def share_cores(cluster: Cluster) -> None:
    """Restrict a Postgres server, which may have started before this process, to the cores of this process."""
    server = psutil.Process(cluster.pid)
    for process in (server, *server.children()):
        os.sched_setaffinity(process.pid, os.sched_getaffinity(0))


def described(*parts: str) -> str:
    """Return a line with the day, processor, cores, load and versions.

    parts: names of Python packages, or "nginx".
    """
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    versions = ", ".join(filter(None, map(version_of, parts)))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {cores} core{'s' if cores > 1 else ''}, load {load}; "
        f"Python {platform.python_version()}, {versions}"
    )


def processor() -> str:
    lines: Sequence[str] = ()
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def version_of(part: str) -> str:
    """Return the version of a package, or nothing if it is not installed."""
    try:
        return nginx_version() if part == "nginx" else f"{part} {version(part)}"
    except PackageNotFoundError:
        return ""


def nginx_version() -> str:
    """Return the version as nginx prints it: "nginx/1.22.1"."""
    said = subprocess.run([find_nginx(), "-v"], capture_output=True, text=True, check=True).stderr
    return said.strip().rpartition(" ")[2]
