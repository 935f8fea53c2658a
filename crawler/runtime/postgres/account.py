"""Who runs Postgres: oneself, or for root an account made for nothing else, since Postgres refuses root."""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crawler.errors import StackFailed
from crawler.runtime.machine import hold_lock

# Not `nobody`: what other services of the machine run as could read the data and the server's memory. Nor numbers
# without a name: Postgres looks its own up.
SERVER_ACCOUNT = "recrawl-postgres"
# No password, no shell, no home of its own. The second is busybox's, as on Alpine.
NO_LOGIN = "/bin/false"
CREATE_COMMANDS = (
    (f"useradd --system --user-group --no-create-home --home-dir / --shell {NO_LOGIN} {SERVER_ACCOUNT}",),
    (f"addgroup -S {SERVER_ACCOUNT}", f"adduser -S -D -H -h / -s {NO_LOGIN} -G {SERVER_ACCOUNT} {SERVER_ACCOUNT}"),
)
CREATE_SECONDS = 15  # another process may be making it, or somebody else another account
COMMAND_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Account:
    """Runs commands as one user of the system; None is oneself."""

    user: pwd.struct_passwd | None

    def run(self, command: Sequence[str], *, handles: Sequence[int] = ()) -> tuple[bool, str]:
        """Run a command; whether it succeeded, and what it said. handles: file descriptors that it keeps."""
        identity = (self.user.pw_uid, self.user.pw_gid) if self.user is not None else (None, None)
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            # Its own locale, so that messages can be recognised; the account's home is not ours.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/", "TZ": "UTC"},
            user=identity[0],
            group=identity[1],
            extra_groups=[] if self.user is not None else None,
            pass_fds=tuple(handles),
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return completed.returncode == 0, completed.stdout

    def give_ownership(self, path: Path) -> None:
        """Give it to this user."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def grant_access(self, folder: Path) -> None:
        """Let this user find in a folder of ours what it knows the name of, and let nobody else in."""
        if self.user is not None:
            os.chown(folder, -1, self.user.pw_gid)
        folder.chmod(0o700 if self.user is None else 0o710)

    def can_enter(self, folder: Path) -> bool:
        """Whether this user gets there from the root of the file system."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)])[0]

    @contextmanager
    def open_path_to(self, folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        """A path by which this user reaches a folder, and the handles that a command needs for it to lead there.

        Below a closed folder (a home of mode 0700) it leads through a handle of ours, so that the folder need not be
        opened to everybody.
        """
        if self.can_enter(folder):
            yield str(folder), ()
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{handle}", (handle,)
        finally:
            os.close(handle)


def choose_server_account() -> Account:
    """Who has to run Postgres when this process wants it; for root made where it is not there yet. StackFailed."""
    return Account(None if os.geteuid() != 0 else find_user(SERVER_ACCOUNT) or create_user())


def find_owner_account(path: Path) -> Account:
    """Whom it belongs to."""
    owner = path.stat().st_uid
    return Account(None if owner == os.geteuid() else pwd.getpwuid(owner))


def find_user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def create_user() -> pwd.struct_passwd:
    """Make the account in which root's Postgres runs, if no other process has just done so. Raises StackFailed."""
    ways = [way for way in CREATE_COMMANDS if shutil.which(way[-1].split()[0]) is not None]
    message = "neither useradd nor adduser is here"
    deadline = time.monotonic() + CREATE_SECONDS
    # Two useradds at the same time both make it, and the number that the second gives it replaces the first one's.
    with hold_lock(Path(f"/run/{SERVER_ACCOUNT}.lock")):
        while (user := find_user(SERVER_ACCOUNT)) is None and ways and time.monotonic() < deadline:
            for command in ways[0]:
                completed = subprocess.run(
                    command.split(), capture_output=True, text=True, errors="replace", check=False
                )
                message = " ".join(completed.stderr.split()) or f"{command.split()[0]} failed"
            if "lock" in message:  # somebody makes another account
                time.sleep(1)
            elif find_user(SERVER_ACCOUNT) is None:
                break
    if user is not None:
        return user
    raise StackFailed(
        f"Postgres refuses to run as root, and the account {SERVER_ACCOUNT} cannot be made ({message}):"
        f" make it (useradd --system {SERVER_ACCOUNT}), run this as another user, or set RECRAWL_DATABASE_URL"
    )
