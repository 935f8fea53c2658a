"""Where a service notes in RECRAWL_HOME/run that it lives, for whoever asks after its health."""

import time
from pathlib import Path

BEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0  # twelve beats: a busy machine may miss some


def worker_note(home: Path) -> Path:
    return home / "run" / "service-worker.json"


def tag_file(home: Path) -> Path:
    return home / "run" / "service-tag"


def beat_file(home: Path) -> Path:
    """Touched every BEAT_SECONDS while the worker does its work."""
    return home / "run" / "service-beat"


def is_beating(home: Path) -> bool:
    """Whether the worker has said of late that it does its work."""
    try:
        return abs(time.time() - beat_file(home).stat().st_mtime) < SILENT_SECONDS
    except FileNotFoundError:
        return False
