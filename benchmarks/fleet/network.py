"""Hosts for workers: network namespaces on an isolated bridge, or the loopback of this machine."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

NETWORK = "10.213"


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses of servers and workers.

    hub: the address of the servers.
    sites: the address of each site.
    hosts: the command prefix for each worker's host; empty if all run on this machine.
    """

    hub: str
    sites: Sequence[str]
    hosts: Sequence[Sequence[str]]

    @property
    def is_apart(self) -> bool:
        """Return whether each worker has a separate host."""
        return any(self.hosts)


def can_be_made() -> bool:
    """Return whether this system can create network namespaces."""
    return os.geteuid() == 0 and shutil.which("ip") is not None and _ip("netns", "list", check=False) == 0


@contextmanager
def loopback(*, workers: int, sites: int) -> Iterator[Network]:
    """Provide a network on this machine, if namespaces are not available."""
    yield Network("127.0.0.1", [f"127.0.0.{2 + site}" for site in range(sites)], [()] * workers)


@contextmanager
def namespaces(*, workers: int, sites: int) -> Iterator[Network]:
    """Provide a namespace for each worker on a bridge with the addresses of the servers, until the block ends."""
    mark = os.getpid() % 100_000
    bridge, names = f"rcb{mark}", [f"recrawl-{mark}-{worker}" for worker in range(workers)]
    addresses = [f"{NETWORK}.1.{1 + site}" for site in range(sites)]
    try:
        _ip("link", "add", bridge, "type", "bridge")
        for address in (f"{NETWORK}.0.1", *addresses):
            _ip("address", "add", f"{address}/16", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for worker, name in enumerate(names):
            outside, inside = f"rco{mark}x{worker}", f"rci{mark}x{worker}"
            _ip("netns", "add", name)
            _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
            _ip("link", "set", outside, "master", bridge, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "address", "add", f"{NETWORK}.0.{2 + worker}/16", "dev", inside)
            _ip("-n", name, "link", "set", inside, "up")
        yield Network(f"{NETWORK}.0.1", addresses, [("ip", "netns", "exec", name) for name in names])
    finally:
        for name in names:
            _ip("netns", "delete", name, check=False)
        _ip("link", "delete", bridge, check=False)


def _ip(*words: str, check: bool = True) -> int:
    return subprocess.run(["ip", *words], check=check, stderr=subprocess.DEVNULL if not check else None).returncode
