"""Print the size of an installation, with its largest packages: python -m scripts.footprint.

It counts the installed packages of requirements.lock, without those for tests and benchmarks.
"""

import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
LARGEST = 12


@dataclass(frozen=True, slots=True)
class Installed:
    """A package with the size of its files, including compiled modules."""

    name: str
    bytes: int


def installed(lock: Path = ROOT / "requirements.lock") -> list[Installed]:
    """Return the installed packages of a lock file, the largest first. Those not installed are for other systems."""
    found = []
    for name in dict.fromkeys(NAMED.findall(lock.read_text(encoding="utf-8"))):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        paths = {Path(str(file.locate())).resolve() for file in files}
        found.append(Installed(name, sum(path.stat().st_size for path in paths if path.is_file())))
    return sorted(found, key=lambda each: -each.bytes)


def main() -> int:
    found = installed()
    total_bytes = sum(each.bytes for each in found)
    for each in found[:LARGEST]:
        print(f"{each.bytes / 1e6:8.1f} MB  {each.name}")
    rest = total_bytes - sum(each.bytes for each in found[:LARGEST])
    print(f"{rest / 1e6:8.1f} MB  {len(found[LARGEST:])} others")
    print(f"{total_bytes / 1e6:8.1f} MB  {len(found)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
