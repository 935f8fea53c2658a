"""Run an experiment: python -m labs replay FOLDER [OPTION ...]."""

import sys
from collections.abc import Sequence

from labs.replay import command


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["replay", *options]:
            return command.main(options)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # 128 and SIGINT, as shells say it
