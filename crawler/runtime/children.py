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

from crawler.runtime.machine import OTHERS_MODE, Process, ensure_secret, find_process, restrict_to_owner, write_private

Report = Callable[[str], None]

TAG = "RECRAWL_STACK"  # in the environment of all that the stack starts, and so of all that this starts in turn
PART = "RECRAWL_STACK_PART"  # beside it: the name by which that was started
STACK_TAG, SERVICE_TAG = "tag", "service-tag"  # files of HOME/run
# What is noted of a home: the parts of its stack, pages that a user serves in a terminal, whom nobody else ends, and
# the worker of a service.
SERVER, WORKER, WEB_UI, USER_WEB_UI, SERVICE_WORKER = "prefect-server", "worker", "pages", "own-pages", "service-worker"
POLL_SECONDS = 0.2
END_POLL_SECONDS = 0.05
END_SECONDS = 30  # what the server and the worker get to end by themselves
REPORT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was started here or by an earlier command, and the facts that were noted with it."""

    process: Process
    facts: Mapping[str, str]

    @property
    def port(self) -> int:
        """The port at which it listens, for one that does."""
        return int(self.facts["port"])


def start_child(
    home: Path, name: str, command: Sequence[str], *, environment: Mapping[str, str], facts: Mapping[str, str]
) -> Child:
    """Start a process that stays when this one ends, in a session of its own, and note who it is.

    What it writes nobody else can read. The folders of logs and notes are there.
    """
    log = get_log_file(home, name)
    log.touch(mode=0o600)
    restrict_to_owner(log)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment, TAG: ensure_tag(home), PART: name},
            cwd=home,  # not the user's folder: prefect would read settings from files that lie there
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=OTHERS_MODE,
        )
    # Should it end before this process does, somebody has to ask for its exit code, or it stays as a zombie.
    threading.Thread(target=child.wait, daemon=True).start()
    started = Child(find_process(child.pid) or Process(child.pid, "ended at once"), facts)
    write_note(home, name, started)
    return started


def get_note_file(home: Path, name: str) -> Path:
    """Return the file that notes a process."""
    return home / "run" / f"{name}.json"


def get_log_file(home: Path, name: str) -> Path:
    """Return the file with what a process says."""
    return home / "logs" / f"{name}.log"


def write_note(home: Path, name: str, child: Child) -> None:
    """Note who a process is. The folder of notes is there."""
    content = {"pid": child.process.pid, "birth": child.process.birth, "facts": child.facts}
    write_private(get_note_file(home, name), json.dumps(content))


def find_child(home: Path, name: str) -> Child | None:
    """Return the process that a note speaks of, if it is still running."""
    try:
        content = json.loads(get_note_file(home, name).read_text(encoding="utf-8"))
        child = Child(Process(content["pid"], content["birth"]), content["facts"])
    except (FileNotFoundError, ValueError, KeyError):  # a note that was being written when the machine went down
        return None
    return child if child.process.is_running() else None


def remove_note(home: Path, name: str) -> None:
    """Remove a note."""
    get_note_file(home, name).unlink(missing_ok=True)


def hash_secret(text: str) -> str:
    """Return a secret's name in a note."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_last_line(home: Path, name: str) -> str:
    """Return the last line that a process wrote, for an error of one line."""
    log = get_log_file(home, name)
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'without a word'} (see {log})"


def ensure_tag(home: Path, name: str = STACK_TAG) -> str:
    """Return the name of this home's stack or service, for good: also the first part of who holds its leases."""
    return ensure_secret(home / "run" / name, lambda: secrets.token_hex(8))


def list_tagged(tag: str, *, part: str | None = None) -> list[Process]:
    """Return all processes of this user that descend from what was started with this tag, orphans too.

    part: only those that descend from what was started by this name.
    """
    variables = {TAG: tag} if part is None else {TAG: tag, PART: part}
    processes = []
    for candidate in psutil.process_iter():
        try:
            is_ours = candidate.pid != os.getpid() and variables.items() <= candidate.environ().items()
        except psutil.Error:  # somebody else's, or gone
            continue
        running = find_process(candidate.pid) if is_ours else None
        if running is not None:
            processes.append(running)
    return processes


def end_part(home: Path, name: str, *, timeout_seconds: float = END_SECONDS) -> None:
    """End what was started by a name, noted or not: a command may be killed between the start and the note."""
    end_processes(list_tagged(ensure_tag(home), part=name), timeout_seconds=timeout_seconds)


def end_processes(processes: Collection[Process], *, timeout_seconds: float = END_SECONDS) -> None:
    """Ask processes to end, and end those that have not done so in time."""
    send_signal(processes, signal.SIGTERM)
    if not wait_for_end(processes, seconds=timeout_seconds):
        send_signal(processes, signal.SIGKILL)
        wait_for_end(processes, seconds=timeout_seconds)


def send_signal(processes: Collection[Process], number: signal.Signals) -> None:
    """Send a signal to those of the processes that are still running."""
    for each in processes:
        if each.is_running():
            try:
                os.kill(each.pid, number)
            except ProcessLookupError:
                continue  # it ended in between


def wait_until(condition: Callable[[], bool], *, child: Child, label: str, seconds: float, report: Report) -> bool:
    """Whether something comes about that a process is to do: waits for it while that lives, at most so long.

    label: the process, which is reported every half minute, so that nobody thinks that nothing happens.
    """
    began = reported_at = time.monotonic()
    while not condition():
        now = time.monotonic()
        if not child.process.is_running() or now - began > seconds:
            return False
        if now - reported_at > REPORT_SECONDS:
            report(f"{label}: still starting")
            reported_at = now
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
