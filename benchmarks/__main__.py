"""Run the benchmarks: python -m benchmarks [NAME [OPTION ...]]. Without a name, all of them, one after the other."""

import sys
from collections.abc import Callable, Mapping, Sequence

from benchmarks import claim, crawl, decide, duplicates, fingerprint, reading, record, rendering, schedule
from benchmarks.change import bench as change

BENCHMARKS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "crawl": crawl.main,
    "record": record.main,
    "claim": claim.main,
    "schedule": schedule.main,
    "fingerprint": fingerprint.main,
    "decide": decide.main,
    "duplicates": duplicates.main,
    "rendering": rendering.main,
    "reading": reading.main,
    "change": change.main,
}


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case []:
            return max(benchmark([]) for benchmark in BENCHMARKS.values())
        case [name, *options] if name in BENCHMARKS:
            return BENCHMARKS[name](options)
        case _:
            print(f"{__doc__}\nNAME is one of: {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
