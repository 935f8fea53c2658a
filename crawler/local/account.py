"""Who runs Postgres: oneself, or for root `nobody`, since Postgres refuses root."""

import os
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER_ACCOUNT = "nobody"  # every Unix has it, so none need be made
COMMAND_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Account:
    """Runs commands as one user of the system; None is oneself."""

    user: pwd.struct_passwd | None

    def run(self, command: Sequence[str], *, handles: Sequence[int] = ()) -> tuple[bool, str]:
        """Run a command; whether it succeeded, and what it said. handles: file descriptors that it keeps."""
        identity = (self.user.pw_uid, self.user.pw_gid) if self.user is not None else (None, None)
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            # Its own locale, so that messages can be recognised; nobody's home is not ours.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/", "TZ": "UTC"},
            user=identity[0],
            group=identity[1],
            extra_groups=[] if self.user is not None else None,
            pass_fds=tuple(handles),
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return done.returncode == 0, done.stdout

    def own(self, path: Path) -> None:
        """Give it to this user."""
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def can_enter(self, folder: Path) -> bool:
        """Whether this user gets there from the root of the file system."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)])[0]

    @contextmanager
    def way_into(self, folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
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


def server_account() -> Account:
    """Who has to run Postgres when this process wants it."""
    return Account(pwd.getpwnam(SERVER_ACCOUNT) if os.geteuid() == 0 else None)
