"""The system account that runs Postgres: the current user, or a dedicated account for root, which Postgres rejects."""

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

# Not `nobody`: other services with that account could read the data and the server's memory. And not a number without
# a name, because Postgres looks up the name of its account.
SERVER_ACCOUNT = "recrawl-postgres"
# Without password, shell and home folder. The second way is for busybox, as on Alpine.
NO_LOGIN = "/bin/false"
CREATE_COMMANDS = (
    (f"useradd --system --user-group --no-create-home --home-dir / --shell {NO_LOGIN} {SERVER_ACCOUNT}",),
    (f"addgroup -S {SERVER_ACCOUNT}", f"adduser -S -D -H -h / -s {NO_LOGIN} -G {SERVER_ACCOUNT} {SERVER_ACCOUNT}"),
)
CREATE_SECONDS = 15  # to try again, since another process may be creating an account


@dataclass(frozen=True, slots=True)
class Account:
    """A system account that runs commands. user: None for the current user."""

    user: pwd.struct_passwd | None

    def run(self, command: Sequence[str], *, handles: Sequence[int] = ()) -> tuple[bool, str]:
        """Run a command. Return whether it succeeded, and its output. handles: file descriptors that it inherits."""
        user = self.user
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            # A fixed locale, so that messages can be recognized, and not the home folder of the current user.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/", "TZ": "UTC"},
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            pass_fds=tuple(handles),
            timeout=900,
            check=False,
        )
        return completed.returncode == 0, completed.stdout

    def give_ownership(self, path: Path) -> None:
        """Make this account the owner of a path."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def grant_access(self, folder: Path) -> None:
        """Let this account open paths inside a folder, without listing it, and deny access to all other users."""
        if self.user is not None:
            os.chown(folder, -1, self.user.pw_gid)
        folder.chmod(0o700 if self.user is None else 0o710)

    def can_enter(self, folder: Path) -> bool:
        """Return whether this account can reach a folder from the root of the file system."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)])[0]

    @contextmanager
    def open_path_to(self, folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield a path by which this account reaches a folder, and file descriptors that its commands must inherit.

        Below a private folder (mode 0700) the path uses an open file descriptor, so that folder can stay private.
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
    """Return the account that runs Postgres for this process; for root, create it if needed. Raises StackFailed."""
    return Account(None if os.geteuid() != 0 else find_user(SERVER_ACCOUNT) or create_user())


def find_owner_account(path: Path) -> Account:
    """Return the account that owns a path."""
    owner = path.stat().st_uid
    return Account(None if owner == os.geteuid() else pwd.getpwuid(owner))


def find_user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def create_user() -> pwd.struct_passwd:
    """Create the account that runs root's Postgres, unless another process has just done so. Raises StackFailed."""
    ways = [way for way in CREATE_COMMANDS if shutil.which(way[-1].split()[0]) is not None]
    message = "neither useradd nor adduser is installed"
    deadline = time.monotonic() + CREATE_SECONDS
    # Two useradd commands at once would both create the account, and the second id would replace the first.
    with hold_lock(Path(f"/run/{SERVER_ACCOUNT}.lock")):
        while (user := find_user(SERVER_ACCOUNT)) is None and ways and time.monotonic() < deadline:
            for command in map(str.split, ways[0]):
                completed = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
                message = " ".join(completed.stderr.split()) or f"{command[0]} failed"
            if "lock" in message:  # another process is creating an account
                time.sleep(1)
            elif find_user(SERVER_ACCOUNT) is None:
                break
    if user is not None:
        return user
    raise StackFailed(
        f"Postgres does not run as root, and the account {SERVER_ACCOUNT} cannot be created ({message}):"
        f" create it (useradd --system {SERVER_ACCOUNT}), run recrawl as another user, or set RECRAWL_DATABASE_URL"
    )
