"""The most memory that a command takes, whatever the tests beside it have taken."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Linux gives a new process the peak of the one that started it as its own. Tests grow large, this program does not.
STARTER = """
import resource, subprocess, sys
with open(sys.argv[1], "wb") as output:
    code = subprocess.run(sys.argv[2:], stdout=output).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def peak_of(*command: str, environment: Mapping[str, str], output: Path) -> int:
    """Run a command that succeeds, what it says into a file. Returns bytes, those of its largest process."""
    done = subprocess.run(
        [sys.executable, "-c", STARTER, str(output), *command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(done.stdout) * 1024
