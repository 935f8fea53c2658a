"""Processes that outlive the command that started them: started in a group of their own, found again, ended."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from crawler.runtime.machine import Process, process
from crawler.runtime.private import OTHERS, close, write_private

TAG = "RECRAWL_STACK"  # in the environment of all that the stack starts, and so of all that this starts in turn
POLL_SECONDS = 0.05
STILL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was started here or by an earlier command, and the facts that were noted with it."""

    process: Process
    facts: dict[str, str]


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    note: Path,
    facts: dict[str, str],
) -> Child:
    """Start a process that stays when this one ends, in a session of its own, and note who it is.

    What it writes nobody else can read. The folders of log and note are there.
    """
    log.touch(mode=0o600)
    close(log)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=folder,  # not the user's: prefect would read settings from files that lie there
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=OTHERS,
        )
    # Should it end before this process does, somebody has to ask for its exit code, or it stays as a zombie.
    threading.Thread(target=child.wait, daemon=True).start()
    started = process(child.pid) or Process(child.pid, "ended at once")
    made = Child(started, facts)
    write_note(note, made)
    return made


def write_note(note: Path, child: Child) -> None:
    """Note who a process is. The folder of the note is there."""
    content = {"pid": child.process.pid, "birth": child.process.birth, "facts": child.facts}
    write_private(note, json.dumps(content))


def noted(note: Path) -> Child | None:
    """The process that a note speaks of, if it is still running."""
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
        found = Child(Process(content["pid"], content["birth"]), content["facts"])
    except (FileNotFoundError, ValueError, KeyError):  # a note that was being written when the machine went down
        return None
    return found if found.process.is_running() else None


def tagged(tag: str) -> list[Process]:
    """All processes of this user that descend from what was started with this tag, orphans too."""
    found = []
    for candidate in psutil.process_iter():
        try:
            is_ours = candidate.pid != os.getpid() and candidate.environ().get(TAG) == tag
        except psutil.Error:  # somebody else's, or gone
            continue
        known = process(candidate.pid) if is_ours else None
        if known is not None:
            found.append(known)
    return found


def end(processes: Collection[Process], *, patience_seconds: float) -> None:
    """Ask processes to end, and end those that have not done so in time."""
    tell(processes, signal.SIGTERM)
    if not wait_for_end(processes, seconds=patience_seconds):
        tell(processes, signal.SIGKILL)
        wait_for_end(processes, seconds=patience_seconds)


def tell(processes: Collection[Process], what: signal.Signals) -> None:
    for each in processes:
        if each.is_running():
            try:
                os.kill(each.pid, what)
            except ProcessLookupError:
                continue  # it ended in between


def comes_about(
    question: Callable[[], bool], *, of: Process, seconds: float, poll_seconds: float, still: Callable[[], None]
) -> bool:
    """Whether something comes about that a process is to do: waits for it while that lives, at most so long.

    still: called every half minute, so that nobody thinks that nothing happens.
    """
    began = said = time.monotonic()
    while not question():
        now = time.monotonic()
        if not of.is_running() or now - began > seconds:
            return False
        if now - said > STILL_SECONDS:
            still()
            said = now
        time.sleep(poll_seconds)
    return True


def wait_for_end(processes: Collection[Process], *, seconds: float) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + seconds
    while any(each.is_running() for each in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
