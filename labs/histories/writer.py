"""Write a history in the format that labs/replay/history.py reads."""

import json
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

DAY_S = 86_400


class HistoryWriter:
    """A history that is written into a folder, event by event in order of time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events: list[tuple[int, str, str | None]] = []
        self._last: dict[str, str | None] = {}
        (folder / "blobs").mkdir(parents=True, exist_ok=True)

    def put(self, day: float, path: str, body: str | None) -> None:
        """Record the content of a file from that day on; None if it is deleted. Unchanged content adds no event."""
        blob = None if body is None else blake2b(body.encode(), digest_size=10).hexdigest()
        if self._last.get(path) == blob:
            return
        self._last[path] = blob
        if body is not None:
            (self._folder / "blobs" / f"{blob}").write_text(body, encoding="utf-8")
        self._events.append((round(day * DAY_S), path, blob))

    def close(self, start: datetime, days: int) -> str:
        """Write `events.json`, and return a line that describes the history."""
        record = {"start": start.isoformat(), "days": days, "events": self._events}
        (self._folder / "events.json").write_text(json.dumps(record), encoding="utf-8")
        first = sum(at == 0 for at, _, _ in self._events)
        return f"{self._folder}: {days} days, {first} files at first, {len(self._events) - first} events"
