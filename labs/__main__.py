"""Run an experiment, or make a history for one:

python -m labs replay FOLDER [OPTION ...]
python -m labs history releases|news FOLDER [OPTION ...]
"""

import sys
from collections.abc import Sequence

from labs.histories.command import main as make_history
from labs.replay.command import main as replay


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["replay", *options]:
            return replay(options)
        case ["history", *options]:
            return make_history(options)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # 128 and SIGINT, as shells say it
