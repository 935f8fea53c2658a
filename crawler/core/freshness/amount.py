"""How much of a page its changes change: the amount of each, from 0 to 1, and the amount to expect of the next one.

The amount of a change is the part of the page's own text that differs, from the SimHash distance of the two versions.
The amount to expect of a page is learnt like its rate: its own changes on top of what its group makes expect, in two
numbers. Relative to the domain's mean page it is a factor on the page's importance, so that a look that would find a
headline replaced is worth more than one that would find a comma.
Sources: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, for what a distance says of
likeness. Related: Olston and Pandey, "Recrawl scheduling based on information longevity", WWW 2008, who weigh a change
by what it is worth to have it.

Each formula stands once, on float arrays of any shapes that broadcast; that of one page's factor also on plain numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.gamma import Floats, Numbers

USUAL_AMOUNT = 0.1  # of a page of which nothing is known: about a tenth of its text
LEAN = 2.0  # changes' worth of the group in what is expected of a page
GROUP_LEAN = 5.0  # pages' worth of the domain in its groups, and of USUAL_AMOUNT in the domain
MOST_CHANGES = 20.0  # that are remembered: what a page did before counts less with each further one
LEAST_FACTOR, MOST_FACTOR = 0.65, 1.55  # on importance; wider bounds cost more freshness than they bring
BITS = 64  # of a fingerprint
UNSEEN_BITS = 2  # a change that moves no bit may be as much as one that moves so many

Groups = NDArray[np.intp]


class ChangeValue(StrEnum):
    """What a change that is found counts."""

    AMOUNT = "amount"  # by how much of the page it changes
    CHANGES = "changes"  # each alike


@dataclass(frozen=True, slots=True)
class Amounts:
    """The changes found on a page: the sum of their amounts, and how many there were. O(1), however many."""

    total: float = 0.0
    changes: float = 0.0


NO_AMOUNTS = Amounts()


@dataclass(frozen=True, slots=True)
class UsualAmount:
    """What a group of pages makes expect of a change, 0 to 1, beside the mean over its domain's pages."""

    group: float = USUAL_AMOUNT
    mean: float = USUAL_AMOUNT


def amount_of_bits(bits: Numbers) -> Floats:
    """The part of a text that differs where its fingerprints differ in so many of 64 bits.

    A bit of two SimHashes differs with chance arccos(s)/pi, where s is the cosine likeness of the texts' features; so
    the likeness to expect is cos(pi bits/64). 32 bits and more are another text.
    """
    return np.asarray(1.0 - np.cos(np.pi * np.minimum(bits, BITS / 2) / BITS))


def bits_of_amount(amount: Numbers) -> Floats:
    """The mean number of bits in which fingerprints differ, where so much of the text differs."""
    return np.asarray(np.arccos(1.0 - np.clip(amount, 0.0, 1.0)) / np.pi * BITS)


MOST_UNSEEN = float(amount_of_bits(UNSEEN_BITS))  # the most that a change which moves no bit may be


def amount_of(bits: int | None, changed_share: float | None) -> float | None:
    """The amount of a change, above 0. None where neither text nor blocks can tell.

    bits: the distance of the versions' fingerprints.  changed_share: of the page's blocks, those that differ. They
    count where the distance cannot see: one digit of a long page moves no bit, and is a change.
    """
    if bits is None:
        return changed_share
    unseen = MOST_UNSEEN if changed_share is None else min(changed_share, MOST_UNSEEN)
    return max(float(amount_of_bits(bits)), unseen)


def learn_amount(total: Numbers, changes: Numbers, amount: Numbers) -> tuple[Floats, Floats]:
    """(total, changes) after one more change of this amount; old ones count less, beyond MOST_CHANGES of them."""
    kept = np.minimum(1.0, (MOST_CHANGES - 1.0) / np.maximum(changes, 1.0))
    return np.asarray(total * kept + amount), np.asarray(changes * kept + 1.0)


def expected_amount(total: Numbers, changes: Numbers, group: Numbers) -> Floats:
    """The amount to expect of a page's next change: its own so far, with LEAN changes of its group mixed in."""
    return np.asarray((total + LEAN * group) / (changes + LEAN))


def amount_factor(expected: Numbers, mean: Numbers) -> Floats:
    """The factor on a page's importance: 1 for the domain's mean page, within [LEAST_FACTOR, MOST_FACTOR]."""
    return np.asarray(np.clip(expected / mean, LEAST_FACTOR, MOST_FACTOR))


def factors_of(pages: Sequence[tuple[float, float, float]], *, mean: float) -> Floats:
    """The factor on the importance of each page, from its total, its changes, and its group's amount."""
    total, changes, group = np.array(pages, dtype=np.float64).reshape(-1, 3).T
    return amount_factor(expected_amount(total, changes, group), mean)


def refit_amounts(total: Floats, changes: Floats, group: Groups, *, groups: int) -> tuple[Floats, float]:
    """What each of `groups` groups makes expect, and the mean of what is expected over all the pages.

    total, changes, group: of each page; group[i] is 0 to groups - 1. A page counts in its group by how much its own
    changes say of it, at most once: pages that change often must not speak for all. A group leans on its domain; number
    0 is the domain, from which groups begin.
    """
    own = changes / (changes + LEAN)
    found = own * total / np.maximum(changes, 1e-9)
    domain = (found.sum() + GROUP_LEAN * USUAL_AMOUNT) / (own.sum() + GROUP_LEAN)
    each = np.bincount(group, weights=found, minlength=groups) + GROUP_LEAN * domain
    by_group = each / (np.bincount(group, weights=own, minlength=groups) + GROUP_LEAN)
    by_group[0] = domain  # the group of the domain itself, as of beliefs: a new template begins with it
    expected = expected_amount(total, changes, by_group[group])
    return by_group, float(expected.mean()) if len(expected) else float(domain)


def with_change(amounts: Amounts, amount: float | None) -> Amounts:
    """A page's amounts after one more change; None: nobody can tell by how much, and nothing is learnt."""
    if amount is None:
        return amounts
    total, changes = learn_amount(amounts.total, amounts.changes, amount)
    return Amounts(float(total), float(changes))


def factor_of(amounts: Amounts, usual: UsualAmount | None) -> float:
    """The factor on one page's importance; 1 where each change counts alike (usual: None)."""
    if usual is None:
        return 1.0
    expected = (amounts.total + LEAN * usual.group) / (
        amounts.changes + LEAN
    )  # numpy takes twenty times as long for one
    return min(max(expected / usual.mean, LEAST_FACTOR), MOST_FACTOR)
