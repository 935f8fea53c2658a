"""Build, check and tag the version in crawler/__init__.py: `make release`.

With ARGS=--dry-run nothing is tagged, so the date in CHANGELOG.md and uncommitted files do not matter. Nothing is
uploaded: the wheel and the source archive stay in `dist`, and the tag stays in this clone.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from packaging.metadata import Metadata
from packaging.version import Version

from scripts import bootstrap

PROJECT = bootstrap.PROJECT
DIST = PROJECT / "dist"
PACKAGES = ("crawler", "flows", "models", "migrations")


class ReleaseError(Exception):
    """The project cannot be released. The message has one line for each reason."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="release", description="Build, check and tag this version.")
    parser.add_argument("--dry-run", action="store_true", help="build and check, but do not tag")
    is_dry = parser.parse_args(arguments).dry_run
    try:
        version = named_version(PROJECT)
        if not is_dry:
            require_none([*changelog_faults(PROJECT, version), *git_faults(PROJECT, version)])
        wheel, archive = build(version)
        require_none([*wheel_faults(wheel, version), *archive_faults(archive, version)])
        try_out(wheel, version)
        if not is_dry:
            tag(PROJECT, version)
    except ReleaseError as error:
        for line in str(error).splitlines():
            print(f"release: {line}", file=sys.stderr)
        return 1
    made = "was not tagged (dry run)" if is_dry else "is tagged"
    print(f"release: {wheel.name} and {archive.name} passed all checks; v{version} {made}")
    return 0


def require_none(faults: Sequence[str]) -> None:
    if faults:
        raise ReleaseError("\n".join(faults))


def named_version(project: Path) -> str:
    """Return the version in crawler/__init__.py, which has three numbers."""
    text = (project / "crawler" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+)"', text, re.MULTILINE)
    if found is None:
        raise ReleaseError("crawler/__init__.py has no version such as 1.2.3")
    return found.group(1)


def changelog_faults(project: Path, version: str) -> list[str]:
    """Return problems of CHANGELOG.md: its top section must be about this version and not empty."""
    text = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, body = sections[0].partition("\n") if sections else ("", "", "")
    if not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", title.strip()):
        return [f"the top section of CHANGELOG.md is {title.strip()!r}, not '[{version}] - YEAR-MONTH-DAY'"]
    return [] if re.search(r"^- ", body, re.MULTILINE) else [f"CHANGELOG.md has no entry for {version}"]


def git_faults(project: Path, version: str) -> list[str]:
    """Return why this commit cannot be tagged: uncommitted files, or an existing tag."""
    faults = []
    if changed := git(project, "status", "--porcelain").splitlines():
        faults.append(f"not committed: {', '.join(line[3:] for line in changed)}")
    if git(project, "tag", "--list", f"v{version}"):
        faults.append(f"v{version} is tagged already: set the next version in crawler/__init__.py")
    return faults


def tag(project: Path, version: str) -> None:
    git(project, "tag", "--annotate", f"v{version}", "--message", f"recrawl {version}")


def git(project: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip("\n")


def build(version: str) -> tuple[Path, Path]:
    """Build the wheel and the source archive with the locked build backend, without network access."""
    shutil.rmtree(DIST, ignore_errors=True)
    if not bootstrap.run([sys.executable, "-m", "hatchling", "build"], may_fail=True):
        raise ReleaseError("the build failed (see above)")
    wheels = list(DIST.glob(f"recrawl-{version}-py3-none-*.whl"))  # of this platform, where there is a C compiler
    archive = DIST / f"recrawl-{version}.tar.gz"
    if len(wheels) != 1 or not archive.is_file():
        raise ReleaseError(f"the build did not create one wheel and {archive.name}")
    return wheels[0], archive


def wheel_faults(wheel: Path, version: str) -> list[str]:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        faults = metadata_faults(file.read(f"recrawl-{version}.dist-info/METADATA"), version)
    typed = {f"{package}/py.typed" for package in PACKAGES}
    faults += [f"the wheel lacks {name}" for name in sorted(typed - names)]
    others = {name.split("/")[0] for name in names} - {*PACKAGES, "deployments", f"recrawl-{version}.dist-info"}
    return faults + [f"the wheel contains {name}, which is not part of the product" for name in sorted(others)]


def archive_faults(archive: Path, version: str) -> list[str]:
    top = f"recrawl-{version}"
    with tarfile.open(archive) as file:
        names = set(file.getnames())
        metadata = file.extractfile(f"{top}/PKG-INFO")
        faults = metadata_faults(metadata.read() if metadata else b"", version)
    needed = ("Makefile", "README.md", "LICENSE", "CHANGELOG.md", "requirements.lock", "scripts/bootstrap.py")
    return faults + [f"the source archive lacks {name}" for name in needed if f"{top}/{name}" not in names]


def metadata_faults(given: bytes, version: str) -> list[str]:
    """Return what a package index would reject, by the rules of the core metadata."""
    try:
        metadata = Metadata.from_email(given, validate=True)
    except ExceptionGroup as error:
        return [str(fault) for fault in error.exceptions]
    faults = [] if metadata.version == Version(version) else [f"the metadata has version {metadata.version}"]
    if not str(email.message_from_bytes(given).get_payload()).strip():
        faults.append("the metadata has no description")
    return faults


def try_out(wheel: Path, version: str) -> None:
    """Install the wheel with the locked dependencies into a new environment elsewhere, and run it."""
    with tempfile.TemporaryDirectory(prefix="recrawl-release-") as folder:
        place = Path(folder) / "venv"
        lock = str(bootstrap.LOCKS["crawl"])
        uv = [str(bootstrap.UV), "pip"]
        into = ["--quiet", "--python", str(place / "bin" / "python")]
        steps = (
            [sys.executable, "-m", "venv", "--without-pip", str(place)],
            [*uv, "sync", *into, "--require-hashes", lock],
            [*uv, "install", *into, "--no-deps", "--no-index", str(wheel)],
            [*uv, "check", *into],
        )
        for step in steps:
            if not bootstrap.run(step, may_fail=True):
                raise ReleaseError(f"{wheel.name} cannot be installed with {Path(lock).name} (see above)")
        command = str(place / "bin" / "recrawl")
        if f"recrawl {version}" not in read_output([command, "--version"], folder) or "Usage" not in read_output(
            [command, "--help"], folder
        ):
            raise ReleaseError(f"the recrawl command of {wheel.name} does not print its version and help")


def read_output(command: Sequence[str], folder: str) -> str:
    env = {"HOME": folder, "PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command[1:])} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
