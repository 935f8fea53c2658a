"""The processes of a service: how many of each kind, what they hold in memory, what they have used."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import psutil
from prometheus_client.core import GaugeMetricFamily, Metric

from crawler.runtime.children import tagged

# By what stands in a command line; the first that fits.
ROLES = {
    "parser_process": "reader",
    "helper_process": "helper",
    "chrom": "browser",
    "prefect.engine": "run",
    "prefect worker": "worker",
    "prefect_server": "server",
}
OTHER, SELF = "other", "self"
ALL_ROLES = (SELF, *dict.fromkeys(ROLES.values()), OTHER)


def process_families(tag: str | None) -> Iterator[Metric]:
    """Gauges by role, of this process and of all that bear the tag of a service."""
    many = Counter[str]()
    memory, seconds = Counter[str](), defaultdict[str, float](float)
    own = os.getpid()
    for pid in {own, *(each.pid for each in (tagged(tag) if tag else ()))}:
        try:
            each = psutil.Process(pid)
            with each.oneshot():
                role = SELF if pid == own else role_of(" ".join(each.cmdline()))
                held, used = each.memory_info().rss, each.cpu_times()
        except psutil.Error:
            continue  # it has ended since
        many[role] += 1
        memory[role] += held
        seconds[role] += used.user + used.system
    yield _by_role("recrawl_processes", "Processes, by what they do.", many)
    # What processes share is counted with each: the sum is an upper bound.
    yield _by_role("recrawl_memory_bytes", "Resident memory of the processes that live now.", memory)
    yield _by_role("recrawl_cpu_seconds", "Processor time that the processes that live now have used.", seconds)


def _by_role(name: str, meaning: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=["role"])
    for role in ALL_ROLES:
        family.add_metric([role], values.get(role, 0))
    return family


def role_of(command_line: str) -> str:
    """What a process does, by its command line."""
    return next((role for sign, role in ROLES.items() if sign in command_line), OTHER)
