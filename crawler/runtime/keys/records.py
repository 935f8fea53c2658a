"""What was given out by name, in a file of the home that its owner alone can read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from crawler.runtime.machine import ensure_private_folder, hold_lock, write_private


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


@dataclass(frozen=True, slots=True)
class NamedRecords(Generic[T]):
    """Records of one kind. file: its name in HOME/run, without its ending."""

    file: str
    adapter: TypeAdapter[list[T]]

    def read(self, home: Path) -> list[T]:
        """Return all records, in the order of their names."""
        try:
            records = self.adapter.validate_json((home / "run" / f"{self.file}.json").read_bytes())
        except FileNotFoundError:
            return []
        return sorted(records, key=lambda each: each.name)

    @contextmanager
    def edit(self, home: Path) -> Iterator[list[T]]:
        """Open the records to be changed; they are kept when the block ends well. Others wait meanwhile."""
        folder = ensure_private_folder(home, "run")
        with hold_lock(folder / f"{self.file}.lock"):
            records = self.read(home)
            yield records
            write_private(folder / f"{self.file}.json", self.adapter.dump_json(records).decode())

    def remove(self, home: Path, name: str) -> bool:
        """Remove the record of that name; return whether there was one."""
        with self.edit(home) as records:
            remaining = [each for each in records if each.name != name]
            was_there = len(remaining) < len(records)
            records[:] = remaining
        return was_there
