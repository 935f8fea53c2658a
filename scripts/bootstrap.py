"""Set up the project in `.venv` with any Python 3.11 or newer: `python3 scripts/bootstrap.py [--test] [--bench] ...`.

`.venv` has several parts with a lock file each: the dependencies of crawling, which are always installed, and those of
tests, benchmarks and docs. A part that was installed once stays, and is updated together with the others. The
installers, pip and uv, are in `.cache/tools`; `--tools` installs only these.

The script uses only the standard library, since it runs before anything is installed. It writes nothing outside of the
project, except that it installs a browser with apt if it runs as root and none is found. It takes a few milliseconds
while pyproject.toml and the lock files do not change. Concurrent runs wait for each other; an incomplete `.venv` is
repaired.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
CACHE = PROJECT / ".cache"  # beside .venv, so that a repair need not download again
TOOLS = CACHE / "tools"  # a separate environment for the installers
UV = TOOLS / "bin" / "uv"
STAMP = VENV / "recrawl-stamp"
TOOLS_LOCK = PROJECT / "requirements-tools.lock"
LOCKS = {  # by part, in the order of installation
    "crawl": PROJECT / "requirements.lock",
    "test": PROJECT / "requirements-test.lock",
    "bench": PROJECT / "requirements-bench.lock",
    "docs": PROJECT / "requirements-docs.lock",
}
READER = PROJECT / "scripts" / "compile_reader.py"
READER_SOURCES = tuple((PROJECT / "crawler" / "core" / "page").rglob("*.c"))
MIN_PYTHON = (3, 11)
APT_SECONDS = 300  # so that a mirror that hangs does not block the setup
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class SetupError(Exception):
    """Setup cannot continue. The message says in one line why and what to do."""


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < MIN_PYTHON:
        say(f"Python 3.11 or newer is required, {sys.executable} is {sys.version.split()[0]}: make PYTHON=python3.12")
        return 1
    parser = argparse.ArgumentParser(description="Install recrawl and its dependencies into .venv.")
    parser.add_argument("--test", action="store_true", help="also install the dependencies of tests and checks")
    parser.add_argument("--bench", action="store_true", help="also install the dependencies of benchmarks")
    parser.add_argument("--docs", action="store_true", help="also install the dependencies of the documentation site")
    parser.add_argument("--tools", action="store_true", help="only install uv into .cache/tools")
    chosen = parser.parse_args(arguments)
    parts = {"crawl", *(part for part in ("test", "bench", "docs") if getattr(chosen, part))}
    try:
        if chosen.tools:
            with hold_setup_lock():
                install_uv()
        elif not is_ready(parts):
            with hold_setup_lock():
                # Another process may have done the work while this one waited for the lock.
                if not is_ready(parts):
                    set_up(parts)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Interrupted. Run the command again to continue.")
        return 130
    return 0


def set_up(chosen: Collection[str]) -> None:
    """Install the requested parts together with the installed ones, so that all are consistent."""
    started = time.monotonic()
    installed = read_stamp()
    parts = [part for part in LOCKS if part in chosen or part in installed]
    install_uv()
    make_venv()
    # Until the end, the stamp is invalid, so that an incomplete environment is never considered ready. It still lists
    # the parts; otherwise a setup for crawling after an interrupted one for tests would remove the latter.
    write_stamp(dict.fromkeys(installed, "unfinished"))
    install_locked([LOCKS[part] for part in parts])
    install_project()
    compile_reader()
    compile_project()
    find_browser()
    write_stamp({part: fingerprint(part) for part in parts})
    say(f"Ready in {time.monotonic() - started:.0f} s: .venv/bin/recrawl --help")


def is_ready(parts: Collection[str]) -> bool:
    """Return whether `.venv` is up to date with pyproject.toml and the lock files of the parts, by its stamp."""
    stamp = read_stamp()
    return os.access(PYTHON, os.X_OK) and all(stamp.get(part) == fingerprint(part) for part in parts)


def read_stamp() -> dict[str, str]:
    """Return the installed parts, each with the digest of its inputs."""
    try:
        lines = STAMP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    words = [line.split() for line in lines]
    return {line[0]: line[1] for line in words if len(line) == 2 and line[0] in LOCKS}


def write_stamp(parts: dict[str, str]) -> None:
    temporary = STAMP.with_suffix(".new")  # so that the stamp is never incomplete
    temporary.write_text("".join(f"{part} {digest}\n" for part, digest in parts.items()), encoding="utf-8")
    temporary.replace(STAMP)


def fingerprint(part: str) -> str:
    """Return a digest of all that a part depends on, including the path, since a moved environment is broken."""
    digest = hashlib.sha256(str(VENV).encode())
    for path in (PROJECT / "pyproject.toml", LOCKS[part], Path(__file__), READER, *READER_SOURCES):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def hold_setup_lock() -> Iterator[None]:
    """Hold the setup lock, which the system releases when this process ends."""
    import fcntl

    try:
        CACHE.mkdir(exist_ok=True)
        # Outside of .venv, which may be deleted while the lock is held.
        file = (CACHE / "setup.lock").open("w", encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{PROJECT} cannot be written ({error.strerror}): use your own checkout") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another setup of this checkout is running: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    """Create an empty environment, unless there is one that works and was not moved."""
    if runs([str(PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]) and was_made_here():
        return
    make_environment(VENV, "--without-pip")


def was_made_here() -> bool:
    """Return whether `.venv` has not been moved, by the path in its scripts."""
    try:
        return str(VENV) in (VENV / "bin" / "activate").read_text(encoding="utf-8")
    except OSError:
        return False


def make_environment(place: Path, *options: str) -> None:
    name = place.relative_to(PROJECT)
    if place.exists():
        say(f"Deleting a broken {name}")
        shutil.rmtree(place, ignore_errors=True)
    say(f"Creating {name} with Python {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401  Debian without python3-venv has venv, but not this
        import venv  # noqa: F401
    except ImportError as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        remedy = f"apt-get install python3-venv (or python{version}-venv)"
        raise SetupError(f"This Python cannot create environments ({error}): {remedy}, then run it again") from error
    command = [sys.executable, "-m", "venv", "--symlinks", *options, str(place)]
    if not run(command, may_fail=True):
        raise SetupError(f"{name} could not be created (see above): check free disk space and permissions")


def install_uv() -> None:
    """Install the locked uv into the tools. Without uv everything still works, but more slowly."""
    text = TOOLS_LOCK.read_text(encoding="utf-8")
    found = re.search(r"^uv==(\S+)", text, re.MULTILINE)
    if found is None:
        raise SetupError(f"{TOOLS_LOCK.name} does not contain uv: restore the committed file")
    version = found.group(1)
    if runs([str(UV), "--version"], expected=f"uv {version}"):
        return
    if not runs([str(TOOLS / "bin" / "python"), "-c", "import pip"]):
        make_environment(TOOLS)
    say(f"Installing uv {version}, which installs the rest")
    run([*pip("install"), "--quiet", "--require-hashes", "--no-deps", "-r", str(TOOLS_LOCK)], may_fail=True)


def pip(*words: str) -> list[str]:
    return [str(TOOLS / "bin" / "python"), "-m", "pip", *words]


def install_locked(locks: Sequence[Path]) -> None:
    """Make the environment contain exactly the packages of the lock files."""
    count = len(set().union(*map(packages_in, locks)))
    say(f"Installing {count} packages, each checked against its hash")
    with_uv = [str(UV), "pip", "sync", "--python", str(PYTHON), "--require-hashes"]
    with_uv.append("--compile-bytecode")  # takes seconds here, or in the first run of every command
    if run([*with_uv, *map(str, locks)], may_fail=True, without=(" + ", " - ", " ~ ")):
        return
    # uv does not read pip's configuration, so pip may reach an index that uv cannot.
    say("uv failed; trying pip, which takes longer")
    # Lock files are complete, so --no-deps is safe. Without it, pip 23 looks for prefect's sqlalchemy[asyncio], does
    # not recognize the line of sqlalchemy, and fails.
    with_pip = pip("--python", str(PYTHON), "install", "--require-hashes", "--no-deps", "--progress-bar", "on")
    for lock in locks:
        with_pip += ["-r", str(lock)]
    if not run(with_pip, may_fail=True):
        raise SetupError("The packages could not be installed (see above): check the network, then run it again")


def packages_in(lock: Path) -> set[str]:
    return set(re.findall(r"^[a-z0-9][^=\[]*", lock.read_text(encoding="utf-8"), re.MULTILINE))


def install_project() -> None:
    """Install `crawler` and the command `recrawl` in the environment, as an editable install of this checkout."""
    # hatchling comes from the lock file, so the build downloads nothing.
    options = ["--no-deps", "--no-build-isolation", "--editable", str(PROJECT)]
    with_uv = [str(UV), "pip", "install", "--quiet", "--python", str(PYTHON)]
    if run([*with_uv, *options], may_fail=True):
        return
    if not run([*pip("--python", str(PYTHON), "install", "--quiet"), *options], may_fail=True):
        raise SetupError("recrawl itself could not be installed (see above): is the checkout complete?")


def compile_reader() -> None:
    """Compile the part of recrawl that reads pages, where there is a C compiler; everything works without it."""
    run([str(PYTHON), str(READER)], may_fail=True)


def compile_project() -> None:
    """Compile this checkout's packages; where Python cannot write bytecode, every command would compile them again."""
    packages = [name for name in ("crawler", "flows", "migrations", "models") if (PROJECT / name).is_dir()]
    run([str(PYTHON), "-m", "compileall", "-q", *packages], may_fail=True)


def find_browser() -> None:
    """Find or install a browser for pages that need one. It is optional, so nothing here fails the setup."""
    if has_browser():
        return
    apt = shutil.which("apt-get")
    if apt is not None and os.geteuid() == 0:
        say("Installing chromium-headless-shell with apt, for pages that need a browser")
        if install_by_apt(apt) and has_browser():
            return
    say(
        "No browser was found, so pages are not rendered. To change that, run `apt-get install chromium-headless-shell`"
        " as root, or `.venv/bin/playwright install --with-deps chromium-headless-shell`"
    )


def has_browser() -> bool:
    if os.environ.get("RECRAWL_BROWSER") or any(shutil.which(name) for name in BROWSERS):
        return True
    downloads = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    return any(downloads.glob("chromium*"))


def install_by_apt(apt: str) -> bool:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = ([apt, "update", "-qq"], [apt, "install", "-y", "-qq", "--no-install-recommends", BROWSERS[0]])
    for command in commands:
        try:
            done = subprocess.run(
                command,
                env=quiet,
                timeout=APT_SECONDS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode != 0:
            return False
    return True


def run(command: Sequence[str], *, may_fail: bool = False, without: tuple[str, ...] = ()) -> bool:
    """Run a command with the caches of this checkout; return whether it succeeded.

    Print its output, except lines that begin with one of `without`.
    """
    try:
        with subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for line in running.stdout or ():
                if not line.startswith(without or ("\0",)):
                    print(f"  {line.rstrip()}", file=sys.stderr, flush=True)
        failure = f"it ended with {running.returncode}" if running.returncode else ""
    except OSError as error:
        failure = str(error)
    if failure and not may_fail:
        raise SetupError(f"{Path(command[0]).name} failed (see above): check the network, then run it again")
    return not failure


def runs(command: Sequence[str], *, expected: str = "") -> bool:
    """Return whether a command can be run, succeeds, and prints the expected text."""
    try:
        done = subprocess.run(command, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and expected in done.stdout


def environment() -> dict[str, str]:
    """Return the user's environment, with caches inside the project and without variables that redirect installers."""
    misleading = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    clean = {name: value for name, value in os.environ.items() if name not in misleading}
    return {
        "UV_SYSTEM_CERTS": "1",  # use the system's certificates, like pip
        "UV_NATIVE_TLS": "1",  # its older name
        **clean,
        "UV_CACHE_DIR": str(CACHE / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "hardlink" if hasattr(os, "link") else "copy",
        "PIP_CACHE_DIR": str(CACHE / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "RUSTUP_HOME": str(CACHE / "rustup"),  # pip runs `rustc --version`, and rustup then writes into HOME
    }


def say(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
