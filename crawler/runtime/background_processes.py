"""Background processes that outlive their command, with a note (a JSON file) in HOME/run and a log in HOME/logs."""

import hashlib
import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from crawler.runtime.machine import OTHERS_MODE, Process, ensure_secret, find_process, restrict_to_owner, write_private

Report = Callable[[str], None]

TAG = "RECRAWL_STACK"  # a variable with the tag of the stack or service, which child processes inherit
PART = "RECRAWL_STACK_PART"  # a variable with the name of the part
STACK_TAG, SERVICE_TAG = "tag", "service-tag"  # files of HOME/run that contain the tags
# The names of notes: the parts of the stack, a web UI in a user's terminal (which the stack never ends), and the worker
# of a service.
SERVER, WORKER, WEB_UI, USER_WEB_UI, SERVICE_WORKER = "prefect-server", "worker", "pages", "own-pages", "service-worker"
POLL_SECONDS = 0.2
END_SECONDS = 30  # from SIGTERM to SIGKILL


@dataclass(frozen=True, slots=True)
class Child:
    """A process with a note. facts: what the note says, such as the port."""

    process: Process
    facts: Mapping[str, str]

    @property
    def port(self) -> int:
        """The port on which the process listens."""
        return int(self.facts["port"])


def start_child(
    home: Path, name: str, command: Sequence[str], *, environment: Mapping[str, str], facts: Mapping[str, str]
) -> Child:
    """Start a background process in a new session and write its note.

    environment: additional variables. The folders of logs and notes must exist; the log is private.
    """
    log = get_log_file(home, name)
    log.touch(mode=0o600)
    restrict_to_owner(log)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment, TAG: ensure_tag(home), PART: name},
            cwd=home,  # prefect would read settings from files in the user's folder
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=OTHERS_MODE,
        )
    # If the child ends before this process, the thread reads its exit code; otherwise it would stay a zombie.
    threading.Thread(target=child.wait, daemon=True).start()
    started = Child(find_process(child.pid) or Process(child.pid, "ended at once"), facts)
    write_note(home, name, started)
    return started


def get_note_file(home: Path, name: str) -> Path:
    """Return the file of the note of a process."""
    return home / "run" / f"{name}.json"


def get_log_file(home: Path, name: str) -> Path:
    """Return the log file of a process."""
    return home / "logs" / f"{name}.log"


def write_note(home: Path, name: str, child: Child) -> None:
    """Write the note of a process. The folder of notes must exist."""
    content = {"pid": child.process.pid, "start_id": child.process.start_id, "facts": child.facts}
    write_private(get_note_file(home, name), json.dumps(content))


def find_child(home: Path, name: str) -> Child | None:
    """Return the process of a note; None if there is no valid note or the process has ended."""
    try:
        content = json.loads(get_note_file(home, name).read_text(encoding="utf-8"))
        child = Child(Process(content["pid"], content["start_id"]), content["facts"])
    except (FileNotFoundError, ValueError, KeyError):  # the note may be damaged after a power failure
        return None
    return child if child.process.is_running() else None


def remove_note(home: Path, name: str) -> None:
    """Remove a note."""
    get_note_file(home, name).unlink(missing_ok=True)


def hash_secret(text: str) -> str:
    """Return the hash of a secret for a note."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_last_line(home: Path, name: str) -> str:
    """Return the last line of a process's log, for an error message of one line."""
    log = get_log_file(home, name)
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'its log is empty'} (see {log})"


def ensure_tag(home: Path, name: str = STACK_TAG) -> str:
    """Return the permanent tag of the stack or service of `home`. The names of its lease holders begin with the tag."""
    return ensure_secret(home / "run" / name, lambda: secrets.token_hex(8))


def list_tagged(tag: str, *, part: str | None = None) -> list[Process]:
    """Return all other processes of this user with a tag, including child processes and orphans.

    part: only return processes of this part.
    """
    variables = {TAG: tag} if part is None else {TAG: tag, PART: part}
    processes: list[Process | None] = []
    for candidate in psutil.process_iter():
        with suppress(psutil.Error):  # another user's process, or one that has ended
            if candidate.pid != os.getpid() and variables.items() <= candidate.environ().items():
                processes.append(find_process(candidate.pid))
    return list(filter(None, processes))


def end_part(home: Path, name: str, *, timeout_seconds: float = END_SECONDS) -> None:
    """End the processes of a part, even without a note: the command may have been killed before it wrote the note."""
    end_processes(list_tagged(ensure_tag(home), part=name), timeout_seconds=timeout_seconds)


def end_processes(processes: Collection[Process], *, timeout_seconds: float = END_SECONDS) -> None:
    """Send SIGTERM to processes, and SIGKILL to those that do not end in time."""
    send_signal(processes, signal.SIGTERM)
    if not wait_for_end(processes, seconds=timeout_seconds):
        send_signal(processes, signal.SIGKILL)
        wait_for_end(processes, seconds=timeout_seconds)


def send_signal(processes: Collection[Process], number: signal.Signals) -> None:
    """Send a signal to the processes that are still running."""
    for each in processes:
        if each.is_running():
            with suppress(ProcessLookupError):  # it may end in between
                os.kill(each.pid, number)


def wait_until(condition: Callable[[], bool], *, child: Child, label: str, seconds: float, report: Report) -> bool:
    """Wait for a condition while a process runs, at most `seconds`. Return whether it was met.

    label: the name of the process in the progress reports, one every half minute.
    """
    began = reported_at = time.monotonic()
    while not condition():
        now = time.monotonic()
        if not child.process.is_running() or now - began > seconds:
            return False
        if now - reported_at > 30:
            report(f"{label}: still starting")
            reported_at = now
        time.sleep(POLL_SECONDS)
    return True


def wait_for_end(processes: Collection[Process], *, seconds: float) -> bool:
    """Wait for processes to end, and return whether all of them did in time."""
    deadline = time.monotonic() + seconds
    while any(each.is_running() for each in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
