"""Challenges: full looks in spite of validators, to see whether these are true; and which looks they are.

The revisits of a whole domain count, or a site of many small groups would pay for as many first rounds. A group is
challenged for itself where the domain's count may pass it over. A young group is suspected of what others have shown.
"""

from collections.abc import Mapping
from dataclasses import replace

from crawler.core.validators.trust import NO_LIE, SENT, Trust, Validator, has_lied, validators_to_send
from crawler.core.visit.visit import Visit

WHOLE_DOMAIN = -1  # in place of a group's number: all pages of a domain, of which only the revisits are counted

FIRST_STRETCH = 4  # revisits with one challenge among them, at first
FIRST_STRETCHES = 5  # number of stretches of that length
LONGER_BY = 4  # factor from one later stretch to the next
LONGEST_STRETCH = 100  # revisits with one challenge among them, in the end
AFTER_ALL = 100  # revisits, from which on each stretch is the longest
GOLDEN = 0.6180339887498949  # its multiples fall evenly and never in step with a round of the group's pages
ALONE = 0.9  # the part of its domain's revisits from which on a group is challenged by the domain's count alone
YOUNG = FIRST_STRETCH * FIRST_STRETCHES  # revisits of a group about which others may know better


def is_challenge(revisit: int) -> bool:
    """Whether the revisit of this number, from 0, is a challenge: 5 of the first 20, later 1 of 100.

    Each stretch of revisits has one challenge; the first 200 have 8. Never more than 200 revisits go by without one.
    """
    number, start, length = 0, 0, FIRST_STRETCH
    while revisit >= start + length:
        if length == LONGEST_STRETCH:
            number += (revisit - start) // length
            start += (revisit - start) // length * length
            break
        number, start = number + 1, start + length
        length = FIRST_STRETCH if number < FIRST_STRETCHES else min(length * LONGER_BY, LONGEST_STRETCH)
    return revisit == start + int(length * ((number + 1) * GOLDEN % 1))


def is_challenge_due(trust: Trust, of_group: int, of_domain: int) -> bool:
    """Whether a revisit is a challenge. of_group, of_domain: its number in the group and in the domain, from 0.

    For a group that has nearly all of the revisits, the domain's count is enough. A group whose validators lied is
    challenged as often as a new domain; any other group now and then.
    """
    if is_challenge(of_domain):
        return True
    is_known_liar = any(trust.of(kind).missed > NO_LIE for kind in SENT)
    return of_group < ALONE * of_domain and is_challenge(of_group if is_known_liar else of_group + AFTER_ALL)


def domain_trust_after(whole: Trust, visit: Visit, believed: Trust) -> Trust:
    """The domain's count of revisits after a look: back to 0 where validators lied that the page's group believed."""
    is_news = has_lied(visit) and bool(validators_to_send(visit.target.held, believed))
    return replace(whole, revisits=0) if is_news else whole


def suspected_validators(trusts: Mapping[int, Trust]) -> frozenset[Validator]:
    """The validators that have lied in every group where a change has put them to the test. trusts: by group."""
    tested = {kind: [one for each in trusts.values() if (one := each.of(kind)).changes_seen] for kind in SENT}
    return frozenset(kind for kind, found in tested.items() if found and not any(one.is_honest for one in found))


def with_suspicion(trust: Trust, suspected: frozenset[Validator]) -> Trust:
    """The trust in a group where some validators are suspected: a young group without a test of its own believes it."""
    unknown = [kind for kind in suspected if not trust.of(kind).changes_seen]
    if not unknown or trust.revisits >= YOUNG:
        return trust
    lies = {kind: replace(trust.of(kind), changes_seen=1.0, missed=1.0) for kind in unknown}
    return replace(trust, stats={**trust.stats, **lies})
