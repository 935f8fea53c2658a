"""Processes that outlive the command that started them: started in a group of their own, noted, found again, ended.

HOME/run holds who was started, HOME/logs what they said.
"""

import hashlib
import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from crawler.runtime.machine import OTHERS, Process, close, ensure_secret, process, write_private

Report = Callable[[str], None]

TAG = "RECRAWL_STACK"  # in the environment of all that the stack starts, and so of all that this starts in turn
PART = "RECRAWL_STACK_PART"  # beside it: the name by which that was started
STACK_TAG, SERVICE_TAG = "tag", "service-tag"  # files of HOME/run
# What is noted of a home: the parts of its stack, pages that a user serves in a terminal, whom nobody else ends, and
# the worker of a service.
SERVER, WORKER, PAGES, OWN_PAGES, SERVICE_WORKER = "prefect-server", "worker", "pages", "own-pages", "service-worker"
POLL_SECONDS = 0.2
END_POLL_SECONDS = 0.05
END_SECONDS = 30  # what the server and the worker get to end by themselves
STILL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was started here or by an earlier command, and the facts that were noted with it."""

    process: Process
    facts: Mapping[str, str]

    @property
    def port(self) -> int:
        """The port at which it listens, for one that does."""
        return int(self.facts["port"])


def start(
    home: Path, name: str, command: Sequence[str], *, environment: Mapping[str, str], facts: Mapping[str, str]
) -> Child:
    """Start a process that stays when this one ends, in a session of its own, and note who it is.

    What it writes nobody else can read. The folders of logs and notes are there.
    """
    log = log_of(home, name)
    log.touch(mode=0o600)
    close(log)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment, TAG: tag_of(home), PART: name},
            cwd=home,  # not the user's folder: prefect would read settings from files that lie there
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=OTHERS,
        )
    # Should it end before this process does, somebody has to ask for its exit code, or it stays as a zombie.
    threading.Thread(target=child.wait, daemon=True).start()
    made = Child(process(child.pid) or Process(child.pid, "ended at once"), facts)
    write_note(home, name, made)
    return made


def note_of(home: Path, name: str) -> Path:
    """Return the file that notes a process."""
    return home / "run" / f"{name}.json"


def log_of(home: Path, name: str) -> Path:
    """Return the file with what a process says."""
    return home / "logs" / f"{name}.log"


def write_note(home: Path, name: str, child: Child) -> None:
    """Note who a process is. The folder of notes is there."""
    content = {"pid": child.process.pid, "birth": child.process.birth, "facts": child.facts}
    write_private(note_of(home, name), json.dumps(content))


def noted(home: Path, name: str) -> Child | None:
    """Return the process that a note speaks of, if it is still running."""
    try:
        content = json.loads(note_of(home, name).read_text(encoding="utf-8"))
        found = Child(Process(content["pid"], content["birth"]), content["facts"])
    except (FileNotFoundError, ValueError, KeyError):  # a note that was being written when the machine went down
        return None
    return found if found.process.is_running() else None


def forget(home: Path, name: str) -> None:
    """Remove a note."""
    note_of(home, name).unlink(missing_ok=True)


def digest(text: str) -> str:
    """Return a secret's name in a note."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def last_words(home: Path, name: str) -> str:
    """Return the last line that a process wrote, for an error of one line."""
    log = log_of(home, name)
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'without a word'} (see {log})"


def tag_of(home: Path, name: str = STACK_TAG) -> str:
    """Return the name of this home's stack or service, for good: also the first part of who holds its leases."""
    return ensure_secret(home / "run" / name, lambda: secrets.token_hex(8))


def tagged(tag: str, *, part: str | None = None) -> list[Process]:
    """Return all processes of this user that descend from what was started with this tag, orphans too.

    part: only those that descend from what was started by this name.
    """
    wanted = {TAG: tag} if part is None else {TAG: tag, PART: part}
    found = []
    for candidate in psutil.process_iter():
        try:
            is_ours = candidate.pid != os.getpid() and wanted.items() <= candidate.environ().items()
        except psutil.Error:  # somebody else's, or gone
            continue
        known = process(candidate.pid) if is_ours else None
        if known is not None:
            found.append(known)
    return found


def end_part(home: Path, name: str, *, patience_seconds: float = END_SECONDS) -> None:
    """End what was started by a name, noted or not: a command may be killed between the start and the note."""
    end(tagged(tag_of(home), part=name), patience_seconds=patience_seconds)


def end(processes: Collection[Process], *, patience_seconds: float = END_SECONDS) -> None:
    """Ask processes to end, and end those that have not done so in time."""
    tell(processes, signal.SIGTERM)
    if not wait_for_end(processes, seconds=patience_seconds):
        tell(processes, signal.SIGKILL)
        wait_for_end(processes, seconds=patience_seconds)


def tell(processes: Collection[Process], what: signal.Signals) -> None:
    """Send a signal to those of the processes that are still running."""
    for each in processes:
        if each.is_running():
            try:
                os.kill(each.pid, what)
            except ProcessLookupError:
                continue  # it ended in between


def comes_about(question: Callable[[], bool], *, of: Child, what: str, seconds: float, report: Report) -> bool:
    """Whether something comes about that a process is to do: waits for it while that lives, at most so long.

    what: the process, which is reported every half minute, so that nobody thinks that nothing happens.
    """
    began = said = time.monotonic()
    while not question():
        now = time.monotonic()
        if not of.process.is_running() or now - began > seconds:
            return False
        if now - said > STILL_SECONDS:
            report(f"{what}: still starting")
            said = now
        time.sleep(POLL_SECONDS)
    return True


def wait_for_end(processes: Collection[Process], *, seconds: float) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + seconds
    while any(each.is_running() for each in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(END_POLL_SECONDS)
    return True
