"""Sets the project up in `.venv`, with any Python 3.11 or newer: `python3 crawler/bootstrap.py [--bench]`.

Needs nothing but the standard library, since it runs before anything is installed. Writes nothing outside the project,
except a browser from apt where it is root and none is found. Run again it does nothing in a few milliseconds, until
pyproject.toml or a lock file changes. Two at once wait for each other; a half-made `.venv` is mended.
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
    from collections.abc import Iterator, Sequence

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
CACHE = PROJECT / ".cache"  # beside .venv, so that a repair need not download again
STAMP = VENV / "recrawl-stamp"
LOCK = PROJECT / "requirements.lock"
BENCH_LOCK = PROJECT / "requirements-bench.lock"
LEAST_PYTHON = (3, 11)
APT_SECONDS = 300  # a mirror that hangs must not hang the set-up
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class SetupError(Exception):
    """Set-up cannot go on; the message says why and what to do, in one line."""


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < LEAST_PYTHON:
        say(f"Python 3.11 or newer is needed, {sys.executable} is {sys.version.split()[0]}: make PYTHON=python3.12 ...")
        return 1
    parser = argparse.ArgumentParser(description="Install recrawl and what it needs into .venv.")
    parser.add_argument("--bench", action="store_true", help="also install what the benchmarks compare with")
    bench = parser.parse_args(arguments).bench
    try:
        if not is_ready(bench=bench):
            with only_one():
                # Whoever waited for the lock may find the work done.
                if not is_ready(bench=bench):
                    set_up(bench=bench)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Interrupted; run it again to go on from here")
        return 130
    return 0


def set_up(*, bench: bool) -> None:
    started = time.monotonic()
    # Without its stamp a half-made environment is never taken for a ready one, wherever this stops.
    STAMP.unlink(missing_ok=True)
    make_venv()
    install_uv()
    locks = [LOCK, BENCH_LOCK] if bench else [LOCK]
    install_locked(locks)
    install_project()
    find_browser()
    STAMP.write_text("\n".join([fingerprint(LOCK), fingerprint(BENCH_LOCK) if bench else ""]), encoding="utf-8")
    say(f"Ready in {time.monotonic() - started:.0f} s: .venv/bin/recrawl --help")


def is_ready(*, bench: bool) -> bool:
    """Whether `.venv` holds what the lock files and pyproject.toml ask for, by its stamp."""
    try:
        stamp = STAMP.read_text(encoding="utf-8").split("\n")
    except OSError:
        return False
    wanted = [fingerprint(LOCK), fingerprint(BENCH_LOCK)]
    return os.access(PYTHON, os.X_OK) and stamp[0] == wanted[0] and (not bench or stamp[1:] == wanted[1:])


def fingerprint(lock: Path) -> str:
    """A digest of all that set-up depends on; the place is one of them, since a moved environment is broken."""
    digest = hashlib.sha256(str(VENV).encode())
    for path in (PROJECT / "pyproject.toml", lock, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the set-up lock; the system frees it when this process ends, however it ends."""
    import fcntl

    try:
        CACHE.mkdir(exist_ok=True)
        # Outside .venv, which may be thrown away while the lock is held.
        file = (CACHE / "setup.lock").open("w", encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{PROJECT} cannot be written ({error.strerror}): use a checkout of your own") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another set-up of this checkout is running: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    if PYTHON.exists() and runs([str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]):
        return
    if VENV.exists():
        say("Throwing a broken .venv away")
        shutil.rmtree(VENV, ignore_errors=True)
    say(f"Making .venv with Python {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401  a Debian without python3-venv has venv, and lacks this
        import venv
    except ImportError as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        remedy = f"apt-get install python3-venv (or python{version}-venv)"
        raise SetupError(f"This Python cannot make environments ({error}): {remedy}, then run it again") from error
    try:
        venv.create(VENV, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f".venv could not be made ({error}): check the space left and the rights on it") from error


def install_uv() -> None:
    """Put the locked uv into the environment; without it everything still works, only slower."""
    wanted = uv_requirement()
    version = wanted.split("==")[1].split()[0]
    if runs([str(VENV / "bin" / "uv"), "--version"], holds=f"uv {version}"):
        return
    only_uv = VENV / "uv.lock.txt"
    only_uv.write_text(wanted, encoding="utf-8")
    say(f"Installing uv {version}, which installs the rest")
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", str(only_uv)])


def uv_requirement() -> str:
    """uv's own lines of the lock file: name, version and hashes."""
    found = re.search(r"^uv==.*\n(?:    .*\n?)*", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SetupError("requirements.lock does not name uv: make lock")
    return found.group()


def install_locked(locks: Sequence[Path]) -> None:
    count = sum(map(packages_in, locks))
    say(f"Installing {count} packages, each checked against its hash")
    with_uv = [str(VENV / "bin" / "uv"), "pip", "sync", "--python", str(PYTHON), "--require-hashes"]
    with_uv.append("--compile-bytecode")  # six seconds here, or as many in the first run of every command
    if run([*with_uv, *map(str, locks)], may_fail=True, without=(" + ", " - ", " ~ ")):
        return
    # uv does not read pip's configuration, so pip may reach an index that uv cannot.
    say("uv could not; trying with pip, which takes longer")
    with_pip = [str(PYTHON), "-m", "pip", "install", "--require-hashes", "--progress-bar", "on"]
    for lock in locks:
        with_pip += ["-r", str(lock)]
    if not run(with_pip, may_fail=True):
        raise SetupError("The packages could not be installed (see above): check the network, then run it again")


def packages_in(lock: Path) -> int:
    return len(re.findall(r"^[a-z0-9]", lock.read_text(encoding="utf-8"), re.MULTILINE))


def install_project() -> None:
    """Make `crawler` and the command `recrawl` available in the environment, straight from this checkout."""
    # hatchling comes from the lock, so that nothing is fetched for the build.
    options = ["--no-deps", "--no-build-isolation", "--editable", str(PROJECT)]
    with_uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]
    if run([*with_uv, *options], may_fail=True):
        return
    if not run([str(PYTHON), "-m", "pip", "install", "--quiet", *options], may_fail=True):
        raise SetupError("recrawl itself could not be installed (see above): is the checkout complete?")


def find_browser() -> None:
    """See to a browser for pages that need one; without it everything else works, so nothing here fails the set-up."""
    if browser_found():
        return
    apt = shutil.which("apt-get")
    if apt is not None and os.geteuid() == 0:
        say("Installing chromium-headless-shell by apt, for pages that need a browser")
        if install_by_apt(apt) and browser_found():
            return
    say(
        "No browser found, so pages that need one are read without it: `apt-get install chromium-headless-shell`"
        " as root, or `.venv/bin/playwright install --with-deps chromium-headless-shell`, mends that at any time"
    )


def browser_found() -> bool:
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
    """Run a command inside the environment; whether it succeeded.

    Its output is shown, but for lines that begin with one of `without`.
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
        raise SetupError(f"{Path(command[0]).name} could not install (see above): check the network, then run it again")
    return not failure


def runs(command: Sequence[str], *, holds: str = "") -> bool:
    """Whether a command can be run, succeeds, and prints what is expected."""
    try:
        done = subprocess.run(command, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and holds in done.stdout


def environment() -> dict[str, str]:
    """The user's environment, with all caches inside the project and nothing that redirects the installers' target."""
    misleading = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    clean = {name: value for name, value in os.environ.items() if name not in misleading}
    return {
        "UV_SYSTEM_CERTS": "1",  # certificates that the machine trusts, pip and uv alike
        "UV_NATIVE_TLS": "1",  # its older name
        **clean,
        "UV_CACHE_DIR": str(CACHE / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "hardlink" if hasattr(os, "link") else "copy",
        "PIP_CACHE_DIR": str(CACHE / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "RUSTUP_HOME": str(CACHE / "rustup"),  # pip asks rustc for its version, for which rustup writes into HOME
    }


def say(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
