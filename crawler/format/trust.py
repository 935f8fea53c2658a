"""How far the validators of a domain are believed, in words."""

from collections.abc import Sequence
from dataclasses import asdict

from crawler.core.http.response import Validators
from crawler.core.validators import SENT, Trust, Validator, head_validators, validators_to_send, with_suspicion
from crawler.store.learned.credibility import TrustRow

NAMES = {Validator.ETAG: "ETag", Validator.LAST_MODIFIED: "Last-Modified"}
NONE_LIES = "honest, as far as they were put to the test"


def format_conditional_request(
    held: Validators,
    trust: Trust,
    *,
    template: str,
    suspected: frozenset[Validator] = frozenset(),
    by_head: bool = False,
    challenge: bool = False,
) -> str:
    """How a page will be asked for next, and why with no validators or not with all that it has.

    trust: of its own group.  suspected: words that have lied elsewhere in the domain, which counts while the group is
    young.  challenge: if it is the domain's next look, it is one.
    """
    believed = with_suspicion(trust, suspected)
    if by_head:
        words = head_validators(held, believed)
        told = ["its length", *(NAMES[kind] for kind in SENT if words and _has(words, kind))]
        return f"by HEAD first, and in full only if {' or '.join(told)} differs"
    if not held:
        return "in full: its server gives no validators"
    if challenge:
        return "in full, if it is the next: a challenge, to see whether its validators are true"
    faults = [f"{NAMES[kind]} {_fault(trust, kind)}" for kind in SENT if _fault(trust, kind) and _has(held, kind)]
    because = f": of pages like {template}, {' and '.join(faults)}" if faults else ""
    doubted = [NAMES[kind] for kind in SENT if believed.of(kind) != trust.of(kind) and _has(held, kind)]
    if doubted:
        because += f": {' and '.join(doubted)} lied wherever it was put to the test, as it was not yet at these pages"
    sent = validators_to_send(held, believed)
    if not sent:
        return f"in full{because}"
    return f"conditionally, by {' and '.join(NAMES[kind] for kind in SENT if _has(sent, kind))}{because}"


def _fault(trust: Trust, kind: Validator) -> str:
    record = trust.of(kind)
    if not record.is_honest:
        return "stayed as it was while pages changed"
    return "" if record.is_steady else "changes while pages do not"


def _has(said: Validators, kind: Validator) -> bool:
    return bool(said.etag if kind is Validator.ETAG else said.last_modified)


def describe_trust(trust: Trust) -> dict[str, object]:
    """Of a page's group, for programs."""
    return {
        "revisits": trust.revisits,
        "challenges": trust.challenges,
        "stats": {kind.value: asdict(record) for kind, record in trust.stats.items()},
    }


def format_trust(standings: Sequence[TrustRow]) -> str:
    """Which groups of pages have validators that are not believed; empty where nothing is known."""
    of_sent = [one for one in standings if one.validator in SENT]
    faults = [
        f"{NAMES[one.validator]} of {one.template} {one.rating} ({_figures(one)})"
        for one in of_sent
        if one.rating != "honest"
    ]
    return "\n".join(faults) if faults else NONE_LIES if of_sent else ""


def _figures(one: TrustRow) -> str:
    part = one.missed / one.changes_seen if one.rating == "lies" else one.flapped / one.unchanged
    looks = "changes" if one.rating == "lies" else "looks at one body"
    return f"{part:.0%} of the last {looks}; {one.challenges} challenges"
