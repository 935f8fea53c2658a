"""Run benchmarks: python -m benchmarks [NAME [OPTION ...]]. Without a name, run all of them in turn."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from benchmarks import schedule
from benchmarks.change import bench as change
from benchmarks.content import bench as content
from benchmarks.crawling import first, kinds, memory, orchestration, processes, revisit
from benchmarks.deploys import bench as deploys
from benchmarks.feed import trial as feed
from benchmarks.fleet import trial as fleet
from benchmarks.harness.command import CommandFailed
from benchmarks.harness.nginx import NginxError
from benchmarks.pages import decide, fingerprint, rendering, stages
from benchmarks.store import claim, duplicates, exported, growth, queue, reading, record, storage
from tests.engine.corpus import CorpusError

BENCHMARKS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "crawl": first.main,
    "kinds": kinds.main,
    "revisit": revisit.main,
    "processes": processes.main,
    "memory": memory.main,
    "orchestration": orchestration.main,
    "fleet": fleet.main,
    "record": record.main,
    "queue": queue.main,
    "growth": growth.main,
    "storage": storage.main,
    "claim": claim.main,
    "schedule": schedule.main,
    "fingerprint": fingerprint.main,
    "pages": stages.main,
    "decide": decide.main,
    "duplicates": duplicates.main,
    "rendering": rendering.main,
    "reading": reading.main,
    "export": exported.main,
    "feed": feed.main,
    "change": change.main,
    "content": content.main,
    "deploys": deploys.main,
}


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case []:
            return max(run(name, []) for name in BENCHMARKS)
        case [name, *options] if name in BENCHMARKS:
            return run(name, options)
        case _:
            print(f"{__doc__}\nNAME is one of: {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2


def run(name: str, options: Sequence[str]) -> int:
    """Run one benchmark. Missing inputs and failed commands print one line to stderr and return 1."""
    print(f"{name}\n", file=sys.stderr)
    try:
        return BENCHMARKS[name](options)
    except (CorpusError, NginxError, CommandFailed) as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also stops the servers that the benchmark started
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, the shell convention
