"""This crawler's own judgement, as a lease comes to it: one page after the other, by decide."""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.change.looks import Look
from crawler.core.belief import PRIOR
from crawler.core.change import Change
from crawler.core.decide import decide
from crawler.core.robots import ALLOW_ALL
from crawler.core.urls import Scope, Url, authority_of, key_of
from crawler.core.visit import Known, State, Target


class Ours:
    """Keeps of each page what the store keeps of it between two looks."""

    def __init__(self) -> None:
        self._targets: dict[Url, Target] = {}

    def judge(self, looks: Sequence[Look]) -> Sequence[bool | None]:
        return [self._judge(look) for look in looks]

    def _judge(self, look: Look) -> bool | None:
        target = self._targets.get(look.page) or new_target(look.page)
        visit = decide(target, look.answer, now=look.at, known=known_of(look.page))
        snapshot = visit.snapshot
        self._targets[look.page] = replace(
            target,
            state=visit.state,
            belief=visit.belief,
            version=snapshot.version if snapshot else target.version,
            received_bytes=visit.received_bytes,
            status=visit.status,
            last_look_at=look.at,
            last_good_at=look.at,
        )
        return None if visit.change is Change.FIRST else visit.change is Change.CHANGED


def new_target(page: Url) -> Target:
    return Target(key=key_of(page), url=page, depth=1, state=State.NEW, belief=PRIOR)


def known_of(page: Url) -> Known:
    return Known(scope=Scope(authority_of(page)), rules=ALLOW_ALL, agent="recrawl")
