"""The subject of a measurement of `python -m labs`: a graph and policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from crawler.app.registration import get_domain
from crawler.cli.session import Interrupts, run_on_database
from crawler.errors import BadInput
from crawler.store.database import Database
from labs.experiments.graph import Graph, from_directory, from_rows, power_law
from labs.experiments.graphs import Links, links_of
from labs.experiments.windows import WindowPolicy, policy_of

MIN_PAGES = 10  # of a graph, so that it has a most important tenth
Kind = TypeVar("Kind", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Subject:
    """The graph to measure: its name and, if it is made up, its size and seed."""

    name: str
    pages: int
    seed: int

    @property
    def title(self) -> str:
        """Return the name; of a folder, its last part."""
        return Path(self.name).absolute().name if Path(self.name).is_dir() else self.name

    def graph(self) -> Graph:
        """Read or make the graph. Raise BadInput if there is none, or if it is too small."""
        graph = self._read()
        if graph.pages < MIN_PAGES:
            raise BadInput(f"{self.name} is too small: it has {graph.pages} of the {MIN_PAGES} pages that are needed")
        return graph

    def _read(self) -> Graph:
        if self.name == "power-law":
            return power_law(self.pages, seed=self.seed)
        folder = Path(self.name)
        if folder.is_dir():
            return from_directory(folder)
        if self.name.startswith((".", "/", "~")):
            raise BadInput(f"the folder {self.name} does not exist")
        links = run_on_database(self._from_database)
        return from_rows(links.outlinks, urls=links.urls)

    async def _from_database(self, db: Database, _: Interrupts) -> Links:
        return await links_of(db, await get_domain(db, self.name))


def parse_policy(text: str) -> WindowPolicy:
    """Parse a window policy. Raise BadInput."""
    try:
        return policy_of(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


def parse_members(kind: type[Kind], names: Sequence[str] | None, called: str) -> list[Kind]:
    """Return the named members of an enum, or all. called: what an unknown name is called. Raise BadInput."""
    known = {each.value: each for each in kind}
    wrong = next((name for name in names or () if name not in known), None)
    if wrong is not None:
        raise BadInput(f"unknown {called} {wrong!r}; choose one of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names or known)]
