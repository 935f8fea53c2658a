"""The number of cores that a process counts, in containers and services with a CPU quota."""

import math
import os
from pathlib import Path

import pytest

from crawler.engine.machine_load import count_usable_cores, read_cpu_quota


@pytest.mark.parametrize(
    ("own", "bounds", "quota"),
    [
        ("/", {"": "200000 100000"}, 2.0),  # a container with its own namespace
        ("/", {"": "max 100000"}, math.inf),
        ("/system.slice/recrawl.service", {"system.slice/recrawl.service": "150000 100000"}, 1.5),
        ("/a/b", {"a/b": "max 100000", "a": "50000 100000"}, 0.5),  # the outer group has a lower quota
        ("/docker/0123", {"": "300000 100000"}, 3.0),  # its own group is not visible
        ("/a", {}, math.inf),
    ],
)
def test_the_tightest_bound_of_all_control_groups_around_a_process_holds(
    own: str, bounds: dict[str, str], quota: float, tmp_path: Path
) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    for group, bound in bounds.items():
        (root / group).mkdir(parents=True, exist_ok=True)
        (root / group / "cpu.max").write_text(f"{bound}\n")
    (tmp_path / "own").write_text(f"1:name=systemd:/elsewhere\n0::{own}\n")

    assert read_cpu_quota(root, tmp_path / "own") == quota


def test_the_older_kind_of_control_groups_is_read_too(tmp_path: Path) -> None:
    group = tmp_path / "cpu,cpuacct" / "docker" / "0123"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("250000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (group.parent / "cpu.cfs_quota_us").write_text("-1\n")
    (group.parent / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "own").write_text("5:cpuset:/docker/0123\n4:cpu,cpuacct:/docker/0123\n0::/\n")

    assert read_cpu_quota(tmp_path, tmp_path / "own") == 2.5


def test_a_system_without_control_groups_bounds_nothing(tmp_path: Path) -> None:
    assert read_cpu_quota(tmp_path, tmp_path / "none") == math.inf
    (tmp_path / "own").write_text("0::/\n")
    assert read_cpu_quota(tmp_path, tmp_path / "own") == math.inf
    assert 1 <= count_usable_cores() <= (os.cpu_count() or 1)
