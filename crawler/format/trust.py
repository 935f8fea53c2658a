"""Descriptions of how reliable a domain's validators (ETag and Last-Modified) are."""

from collections.abc import Sequence
from dataclasses import asdict

from crawler.core.http.response import Validators
from crawler.core.validators import (
    SENT_VALIDATORS,
    Validator,
    ValidatorTrust,
    apply_suspicion,
    choose_head_validators,
    choose_validators,
)
from crawler.store.learned.credibility import TrustRow

VALIDATOR_NAMES = {Validator.ETAG: "ETag", Validator.LAST_MODIFIED: "Last-Modified"}
ALL_HONEST = "reliable in all checks"


def format_conditional_request(
    validators: Validators,
    trust: ValidatorTrust,
    *,
    template: str,
    suspected: frozenset[Validator] = frozenset(),
    by_head: bool = False,
    validator_check: bool = False,
) -> str:
    """Describe the next request of a page, and why it does not use all validators of the page.

    trust: the statistics of the page's group.  suspected: validators that were wrong elsewhere in the domain, which
    counts while the group has few visits.  by_head: whether a HEAD request comes first.
    validator_check: whether the next visit of the domain is a validator check.
    """
    effective_trust = apply_suspicion(trust, suspected)
    if by_head:
        head_words = choose_head_validators(validators, effective_trust)
        names = [
            "its length",
            *(VALIDATOR_NAMES[kind] for kind in SENT_VALIDATORS if head_words and _has_validator(head_words, kind)),
        ]
        return f"HEAD first, then in full only if {' or '.join(names)} differs"
    if not validators:
        return "in full: the server sends no validators"
    if validator_check:
        return "in full if it is fetched next, as a validator check"
    faults = [
        f"{VALIDATOR_NAMES[kind]} {_format_fault(trust, kind)}"
        for kind in SENT_VALIDATORS
        if _format_fault(trust, kind) and _has_validator(validators, kind)
    ]
    because = f": for pages like {template}, {' and '.join(faults)}" if faults else ""
    doubted = [
        VALIDATOR_NAMES[kind]
        for kind in SENT_VALIDATORS
        if effective_trust.get_stats(kind) != trust.get_stats(kind) and _has_validator(validators, kind)
    ]
    if doubted:
        because += f": {' and '.join(doubted)} failed all checks on other pages, and was not checked on these yet"
    sent = choose_validators(validators, effective_trust)
    if not sent:
        return f"in full{because}"
    names = [VALIDATOR_NAMES[kind] for kind in SENT_VALIDATORS if _has_validator(sent, kind)]
    return f"conditional, with {' and '.join(names)}{because}"


def _format_fault(trust: ValidatorTrust, kind: Validator) -> str:
    record = trust.get_stats(kind)
    if not record.is_honest:
        return "stayed the same while pages changed"
    return "" if record.is_steady else "changes while pages do not"


def _has_validator(validators: Validators, kind: Validator) -> bool:
    return bool(validators.etag if kind is Validator.ETAG else validators.last_modified)


def describe_trust(trust: ValidatorTrust) -> dict[str, object]:
    """Return the validator statistics of a page's group as JSON."""
    return {
        "revisits": trust.revisits,
        "validator_checks": trust.validator_checks,
        "stats": {kind.value: asdict(record) for kind, record in trust.stats.items()},
    }


def format_trust(trust_rows: Sequence[TrustRow]) -> str:
    """List the groups of pages with unreliable validators; empty if nothing is known."""
    of_sent = [one for one in trust_rows if one.validator in SENT_VALIDATORS]
    faults = [
        f"{VALIDATOR_NAMES[one.validator]} of {one.template} {one.rating} ({_format_figures(one)})"
        for one in of_sent
        if one.rating != "honest"
    ]
    return "\n".join(faults) if faults else ALL_HONEST if of_sent else ""


def _format_figures(one: TrustRow) -> str:
    part = one.missed / one.changes_seen if one.rating == "lies" else one.flapped / one.unchanged
    compared = "changes" if one.rating == "lies" else "visits without a change"
    return f"{part:.0%} of the last {compared}; {one.validator_checks} checks"
