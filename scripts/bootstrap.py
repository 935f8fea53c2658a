"""Sets the project up in `.venv`, with any Python 3.11 or newer: `python3 scripts/bootstrap.py [--test] [--bench] ...`.

`.venv` is made of parts, each with a lock file: what crawling needs, which is always there; what testing adds; what the
benchmarks compare with. A part that was once asked for stays, and is kept at its lock file whenever another one is
installed. What installs, pip and uv, stands beside `.venv` in `.cache/tools`; `--tools` sees to that alone.

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
    from collections.abc import Collection, Iterator, Sequence

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
CACHE = PROJECT / ".cache"  # beside .venv, so that a repair need not download again
TOOLS = CACHE / "tools"  # an environment of its own: what installs is no part of what is installed
UV = TOOLS / "bin" / "uv"
STAMP = VENV / "recrawl-stamp"
TOOLS_LOCK = PROJECT / "requirements-tools.lock"
LOCKS = {  # of the parts, in the order in which they are installed
    "crawl": PROJECT / "requirements.lock",
    "test": PROJECT / "requirements-test.lock",
    "bench": PROJECT / "requirements-bench.lock",
    "docs": PROJECT / "requirements-docs.lock",
}
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
    parser.add_argument("--test", action="store_true", help="also install what tests and checks need")
    parser.add_argument("--bench", action="store_true", help="also install what the benchmarks compare with")
    parser.add_argument("--docs", action="store_true", help="also install what makes the documentation's site")
    parser.add_argument("--tools", action="store_true", help="install uv into .cache/tools, and nothing else")
    asked = parser.parse_args(arguments)
    parts = {"crawl", *(part for part in ("test", "bench", "docs") if getattr(asked, part))}
    try:
        if asked.tools:
            with only_one():
                install_uv()
        elif not is_ready(parts):
            with only_one():
                # Whoever waited for the lock may find the work done.
                if not is_ready(parts):
                    set_up(parts)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Interrupted; run it again to go on from here")
        return 130
    return 0


def set_up(asked: Collection[str]) -> None:
    """Install the parts that are asked for, and those that are there already, so that all fit together."""
    started = time.monotonic()
    installed = read_stamp()
    parts = [part for part in LOCKS if part in asked or part in installed]
    install_uv()
    make_venv()
    # With a stamp that nothing fits, a half-made environment is never taken for a ready one, wherever this stops. It
    # still names the parts, or a set-up for crawling after an interrupted one for testing would throw the latter away.
    write_stamp(dict.fromkeys(installed, "unfinished"))
    install_locked([LOCKS[part] for part in parts])
    install_project()
    compile_project()
    find_browser()
    write_stamp({part: fingerprint(part) for part in parts})
    say(f"Ready in {time.monotonic() - started:.0f} s: .venv/bin/recrawl --help")


def is_ready(parts: Collection[str]) -> bool:
    """Whether `.venv` holds what the lock files of the parts and pyproject.toml ask for, by its stamp."""
    stamp = read_stamp()
    return os.access(PYTHON, os.X_OK) and all(stamp.get(part) == fingerprint(part) for part in parts)


def read_stamp() -> dict[str, str]:
    """The parts that were installed, each with the digest of what it was made from."""
    try:
        lines = STAMP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    words = [line.split() for line in lines]
    return {line[0]: line[1] for line in words if len(line) == 2 and line[0] in LOCKS}


def write_stamp(parts: dict[str, str]) -> None:
    whole = STAMP.with_suffix(".new")  # never half a stamp
    whole.write_text("".join(f"{part} {digest}\n" for part, digest in parts.items()), encoding="utf-8")
    whole.replace(STAMP)


def fingerprint(part: str) -> str:
    """A digest of all that a part depends on; the place is one of them, since a moved environment is broken."""
    digest = hashlib.sha256(str(VENV).encode())
    for path in (PROJECT / "pyproject.toml", LOCKS[part], Path(__file__)):
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
    """An environment with nothing in it, unless there is one that works and stands where it was made."""
    if runs([str(PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]) and was_made_here():
        return
    make_environment(VENV, "--without-pip")


def was_made_here() -> bool:
    """Whether `.venv` has not been moved: its commands name the place where they were made."""
    try:
        return str(VENV) in (VENV / "bin" / "activate").read_text(encoding="utf-8")
    except OSError:
        return False


def make_environment(place: Path, *options: str) -> None:
    name = place.relative_to(PROJECT)
    if place.exists():
        say(f"Throwing a broken {name} away")
        shutil.rmtree(place, ignore_errors=True)
    say(f"Making {name} with Python {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401  a Debian without python3-venv has venv, and lacks this
        import venv  # noqa: F401
    except ImportError as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        remedy = f"apt-get install python3-venv (or python{version}-venv)"
        raise SetupError(f"This Python cannot make environments ({error}): {remedy}, then run it again") from error
    command = [sys.executable, "-m", "venv", "--symlinks", *options, str(place)]
    if not run(command, may_fail=True):
        raise SetupError(f"{name} could not be made (see above): check the space left and the rights on it")


def install_uv() -> None:
    """Put the locked uv beside the environment; without it everything still works, only slower."""
    text = TOOLS_LOCK.read_text(encoding="utf-8")
    found = re.search(r"^uv==(\S+)", text, re.MULTILINE)
    if found is None:
        raise SetupError(f"{TOOLS_LOCK.name} does not name uv: take the file as it was committed")
    version = found.group(1)
    if runs([str(UV), "--version"], holds=f"uv {version}"):
        return
    if not runs([str(TOOLS / "bin" / "python"), "-c", "import pip"]):
        make_environment(TOOLS)
    say(f"Installing uv {version}, which installs the rest")
    run([*pip("install"), "--quiet", "--require-hashes", "--no-deps", "-r", str(TOOLS_LOCK)], may_fail=True)


def pip(*words: str) -> list[str]:
    return [str(TOOLS / "bin" / "python"), "-m", "pip", *words]


def install_locked(locks: Sequence[Path]) -> None:
    """Make the environment hold what the lock files name, and nothing else."""
    count = len(set().union(*map(packages_in, locks)))
    say(f"Seeing to {count} packages, each checked against its hash")
    with_uv = [str(UV), "pip", "sync", "--python", str(PYTHON), "--require-hashes"]
    with_uv.append("--compile-bytecode")  # seconds here, or as many in the first run of every command
    if run([*with_uv, *map(str, locks)], may_fail=True, without=(" + ", " - ", " ~ ")):
        return
    # uv does not read pip's configuration, so pip may reach an index that uv cannot.
    say("uv could not; trying with pip, which takes longer")
    # A lock file names everything there is to install. Let to look for itself, pip 23 asks for prefect's
    # sqlalchemy[asyncio], does not find that in the line of sqlalchemy, and gives up.
    with_pip = pip("--python", str(PYTHON), "install", "--require-hashes", "--no-deps", "--progress-bar", "on")
    for lock in locks:
        with_pip += ["-r", str(lock)]
    if not run(with_pip, may_fail=True):
        raise SetupError("The packages could not be installed (see above): check the network, then run it again")


def packages_in(lock: Path) -> set[str]:
    return set(re.findall(r"^[a-z0-9][^=\[]*", lock.read_text(encoding="utf-8"), re.MULTILINE))


def install_project() -> None:
    """Make `crawler` and the command `recrawl` available in the environment, straight from this checkout."""
    # hatchling comes from the lock, so that nothing is fetched for the build.
    options = ["--no-deps", "--no-build-isolation", "--editable", str(PROJECT)]
    with_uv = [str(UV), "pip", "install", "--quiet", "--python", str(PYTHON)]
    if run([*with_uv, *options], may_fail=True):
        return
    if not run([*pip("--python", str(PYTHON), "install", "--quiet"), *options], may_fail=True):
        raise SetupError("recrawl itself could not be installed (see above): is the checkout complete?")


def compile_project() -> None:
    """Compile what this checkout runs: where Python may not write bytecode, every command would do it again."""
    packages = [name for name in ("crawler", "flows", "migrations", "models") if (PROJECT / name).is_dir()]
    run([str(PYTHON), "-m", "compileall", "-q", *packages], may_fail=True)


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
    """Run a command with the caches of this checkout; whether it succeeded.

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
