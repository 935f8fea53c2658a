"""Which looks are challenges: full looks in spite of validators, to see whether these are true.

The revisits of a whole domain count, or a site of many small sections would pay for as many first rounds. Each section
is challenged for itself where that may pass it over; and as long as it is young, it is held to what others have shown.
"""

from collections.abc import Mapping
from dataclasses import replace

from crawler.core.validators.trust import NO_LIE, SENT, Trust, Validator, has_lied, sendable
from crawler.core.visit import Visit

WHOLE = -1  # in place of a group's number: all of a domain's pages, whose revisits count, and no more

FIRST_STRETCH = 4  # of the first revisits one in so many is a challenge,
FIRST_STRETCHES = 5  # for so many times that,
LONGER_BY = 4  # then fewer,
LONGEST_STRETCH = 100  # down to one in so many
AFTER_ALL = 100  # revisits, from which on it is so
GOLDEN = 0.6180339887498949  # its multiples fall evenly and never in step with a round of the group's pages
ALONE = 0.9  # the part of its domain's revisits from which on a group is challenged by the domain's count alone
YOUNG = FIRST_STRETCH * FIRST_STRETCHES  # revisits of a group about which others may know better


def is_challenge(revisit: int) -> bool:
    """Whether a revisit of this number, from 0, is a challenge: 5 of the first 20, later 1 of 100.

    One in each stretch of revisits; 8 of the first 200. Never more than 200 revisits go by without one.
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
    """Whether a group's revisit of this number is a challenge, which is the domain's of that number.

    Of a group that has nearly all of the revisits, the domain's count is enough. One that lied is asked as often as a
    new domain; any other now and then.
    """
    if is_challenge(of_domain):
        return True
    is_known_liar = any(trust.of(kind).missed > NO_LIE for kind in SENT)
    return of_group < ALONE * of_domain and is_challenge(of_group if is_known_liar else of_group + AFTER_ALL)


def counted(whole: Trust, visit: Visit, believed: Trust) -> Trust:
    """The domain's count after a look: it begins again where words lied that were believed of the page's group."""
    is_news = has_lied(visit) and bool(sendable(visit.target.held, believed))
    return replace(whole, revisits=0) if is_news else whole


def suspected(trusts: Mapping[int, Trust]) -> frozenset[Validator]:
    """The words that have lied wherever a change has put them to the test. trusts: by group."""
    tested = {kind: [one for each in trusts.values() if (one := each.of(kind)).changes_seen] for kind in SENT}
    return frozenset(kind for kind, found in tested.items() if found and not any(one.is_honest for one in found))


def with_suspicion(trust: Trust, suspected: frozenset[Validator]) -> Trust:
    """What is believed of a group where these words are suspected: of a young one, what it has not been told itself."""
    unknown = [kind for kind in suspected if not trust.of(kind).changes_seen]
    if not unknown or trust.revisits >= YOUNG:
        return trust
    lies = {kind: replace(trust.of(kind), changes_seen=1.0, missed=1.0) for kind in unknown}
    return replace(trust, stats={**trust.stats, **lies})
