"""Named records in a private file of RECRAWL_HOME."""

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
    """The records of one kind. file: the name of their file in HOME/run, without extension."""

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
        """Lock the records for changes, and save them when the block succeeds."""
        folder = ensure_private_folder(home, "run")
        with hold_lock(folder / f"{self.file}.lock"):
            records = self.read(home)
            yield records
            write_private(folder / f"{self.file}.json", self.adapter.dump_json(records).decode())

    def remove(self, home: Path, name: str) -> bool:
        """Remove the record of that name, and return whether it existed."""
        with self.edit(home) as records:
            count = len(records)
            records[:] = [each for each in records if each.name != name]
        return len(records) < count
