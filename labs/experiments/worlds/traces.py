"""Recorded worlds: when each page changed, read from a file, or reconstructed from the visits of a real crawl."""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from crawler.errors import BadInput
from labs.experiments import estimate
from labs.experiments.worlds.world import Flags, Floats, Ints, Segments, World, keys_of

DAY_SECONDS = 86_400.0
EDIT = 0.55  # share of a page that a change replaces, if it was not recorded: the mean of the generated worlds


@dataclass(frozen=True, slots=True, eq=False)  # sources are compared by identity
class Trace:
    """Pages and the instants at which they changed, in days from the first one of all.

    importance: on any scale.  page, at: one row for each change, in any order.
    """

    name: str
    days: float
    urls: tuple[str, ...]
    importance: Floats
    page: Ints
    at: Floats

    @property
    def pages(self) -> int:
        return len(self.urls)

    def world(self, seed: int) -> World:  # noqa: ARG002  a trace has no randomness
        """Return the trace as a world; its true rate is a page's changes over the whole time."""
        counts = np.bincount(self.page, minlength=self.pages)
        rates = counts / self.days
        return _world(self.name, self.days, importance=self.importance, rates=rates, page=self.page, at=self.at)


@dataclass(frozen=True, slots=True, eq=False)  # sources are compared by identity
class History:
    """The successful visits of a crawl, page by page and ordered by time within each page.

    at: days from the first visit of all.  found: whether the visit found a change since the previous one.
    """

    name: str
    days: float
    urls: tuple[str, ...]
    importance: Floats
    page: Ints
    at: Floats
    found: Flags

    @property
    def pages(self) -> int:
        return len(self.urls)

    def world(self, seed: int) -> World:
        """Return one possible past: no change before a visit that found none, at least one before any other visit.

        What visits cannot show is drawn from a Poisson process with the page's estimated rate, so seeds differ.
        """
        rng = np.random.default_rng(seed)
        first = np.append(True, self.page[1:] != self.page[:-1])
        gaps = np.where(first, 0.0, np.append(0.0, np.diff(self.at)))
        rates = self._rates(gaps, first)
        found = self.found & ~first & (gaps > 0)
        page, gap, start = self.page[found], gaps[found], (self.at - gaps)[found]
        # The first change in such a gap is exponential, given that it is within the gap; the others are unconstrained.
        at_least = -np.log1p(rng.random(len(gap)) * np.expm1(-rates[page] * gap)) / np.maximum(rates[page], 1e-12)
        more = rng.poisson(rates[page] * (gap - at_least))
        again = np.repeat(np.arange(len(page)), more)
        later = (start + at_least)[again] + rng.random(len(again)) * (gap - at_least)[again]
        last = np.append(self.page[1:] != self.page[:-1], True)
        tail = rng.poisson(rates[self.page[last]] * (self.days - self.at[last]))
        after = np.repeat(np.flatnonzero(last), tail)
        beyond = self.at[after] + rng.random(len(after)) * (self.days - self.at[after])
        pages = np.concatenate([page, page[again], self.page[after]])
        at = np.concatenate([start + at_least, later, beyond])
        return _world(self.name, self.days, importance=self.importance, rates=rates, page=pages, at=at)

    def _rates(self, gaps: Floats, first: Flags) -> Floats:
        """Return each page's rate from its visits alone; the minimum is one change in a hundred times the history."""
        place = np.arange(len(gaps)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        table, hits = np.zeros((2, self.pages, int(place.max()) + 1))
        table[self.page, place], hits[self.page, place] = gaps, self.found & ~first
        rates = np.zeros(self.pages)
        visited = (table > 0).any(axis=1)
        if visited.any():
            rates[visited] = estimate.rate(table[visited], hits[visited] > 0)
        return np.maximum(rates, 0.01 / self.days)


def history_of_visits(
    name: str, days: float, visits: Mapping[str, Sequence[tuple[float, bool]]], *, importance: Mapping[str, float]
) -> History:
    """Build a history from each page's visits in order: (days from the first visit of all, whether it changed)."""
    every = [visit for found in visits.values() for visit in found]
    return History(
        name=name,
        days=days,
        urls=tuple(visits),
        importance=np.array([importance[url] for url in visits]),
        page=np.repeat(np.arange(len(visits)), [len(found) for found in visits.values()]),
        at=np.array([at for at, _ in every]),
        found=np.array([changed for _, changed in every], np.bool_),
    )


def _world(name: str, days: float, *, importance: Floats, rates: Floats, page: Ints, at: Floats) -> World:
    size = len(importance)
    return World(
        name=name,
        days=days,
        importance=importance / importance.mean(),
        host=np.zeros(size, np.int64),
        group=np.zeros(size, np.int64),
        born=np.zeros(size),
        died=np.full(size, np.inf),
        edit=np.full(size, EDIT),
        keys=keys_of(page, np.minimum(at, days), stride=days + 1.0),
        segments=Segments(np.arange(size), np.zeros(size), rates),
    )


def read_trace(path: Path) -> Trace:
    """Read a trace from a file: CSV with lines `page,changed_at`, or JSONL with {"page": ..., "changes": [...]}.

    Instants are ISO 8601 (UTC by default) or numbers of days.  A CSV line without an instant names a page that never
    changed.  JSONL may contain an importance.  Raise BadInput that names the line.
    """
    read = _read_jsonl if path.suffix in {".jsonl", ".ndjson"} else _read_csv
    changes: dict[str, list[float]] = {}
    importance: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, (page, instants, weight) in enumerate(read(file), start=1):
                changes.setdefault(page, []).extend(_day(each, path, number) for each in instants)
                importance[page] = weight
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not a trace: {error}") from error
    known = [at for each in changes.values() for at in each]
    if not known or max(known) - min(known) < 2:
        raise BadInput(f"{path} has no two changes that are two days apart, so there is nothing to replay")
    start = math.floor(min(known))
    counts = [len(each) for each in changes.values()]
    return Trace(
        name=path.stem,
        days=float(math.ceil(max(known)) - start),
        urls=tuple(changes),
        importance=np.array(list(importance.values())),
        page=np.repeat(np.arange(len(changes)), counts),
        at=np.array([at for each in changes.values() for at in each]) - start,
    )


def _read_csv(lines: Iterator[str]) -> Iterator[tuple[str, Sequence[Any], float]]:
    for row in csv.reader(lines):
        if row and row[:2] != ["page", "changed_at"]:
            yield row[0], [cell for cell in row[1:2] if cell], 1.0


def _read_jsonl(lines: Iterator[str]) -> Iterator[tuple[str, Sequence[Any], float]]:
    for line in lines:
        if line.strip():
            row = json.loads(line)
            weight = float(row.get("importance", 1.0))
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(f"importance {weight} is not above 0")
            yield str(row["page"]), row["changes"], weight


def _day(instant: str | float, path: Path, number: int) -> float:
    """Return an instant in days from an arbitrary zero."""
    try:
        return float(instant)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(str(instant))
    except ValueError as error:
        raise BadInput(f"{path}, line {number}: {instant!r} is neither a number of days nor ISO 8601") from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() / DAY_SECONDS
