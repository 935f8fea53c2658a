"""What was given out by name, in a file of the home that its owner alone can read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from crawler.runtime.machine import held, private_folder, write_private


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


@dataclass(frozen=True, slots=True)
class NamedRecords(Generic[T]):
    """Records of one kind. file: its name in HOME/run, without its ending."""

    file: str
    form: TypeAdapter[list[T]]

    def read(self, home: Path) -> list[T]:
        """Return all records, in the order of their names."""
        try:
            found = self.form.validate_json((home / "run" / f"{self.file}.json").read_bytes())
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda each: each.name)

    @contextmanager
    def changing(self, home: Path) -> Iterator[list[T]]:
        """Open the records to be changed; they are kept when the block ends well. Others wait meanwhile."""
        folder = private_folder(home, "run")
        with held(folder / f"{self.file}.lock"):
            known = self.read(home)
            yield known
            write_private(folder / f"{self.file}.json", self.form.dump_json(known).decode())

    def remove(self, home: Path, name: str) -> bool:
        """Remove the record of that name; return whether there was one."""
        with self.changing(home) as known:
            left = [each for each in known if each.name != name]
            was_there = len(left) < len(known)
            known[:] = left
        return was_there
