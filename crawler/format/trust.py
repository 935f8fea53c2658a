"""Descriptions of how reliable a domain's validators (ETag and Last-Modified) are."""

from collections.abc import Sequence

from msgspec.structs import asdict

from crawler.core import validator_trust as decisions
from crawler.core.http.response import Validators
from crawler.core.validator_trust import SENT_VALIDATORS, Validator, ValidatorTrust, apply_suspicion
from crawler.store.learned.credibility import TrustRow

VALIDATOR_NAMES = {Validator.ETAG: "ETag", Validator.LAST_MODIFIED: "Last-Modified"}


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

    trust: the validator statistics of the pages with the same URL template.  suspected: validators that were wrong
    elsewhere in the domain; those not checked in this template are doubted while it has few visits.  by_head: whether
    a HEAD request comes first.  validator_check: whether the next visit in the domain is a validator check.
    """
    effective = apply_suspicion(trust, suspected)
    if by_head:
        compared = decisions.choose_head_validators(validators, effective)
        names = ["its length", *(VALIDATOR_NAMES[kind] for kind in (_list_kinds(compared) if compared else ()))]
        return f"HEAD first, then in full only if {' or '.join(names)} differs"
    if not validators:
        return "in full: the server sends no validators"
    if validator_check:
        return "in full if it is fetched next, as a validator check"
    kinds = _list_kinds(validators)
    faults = [f"{VALIDATOR_NAMES[kind]} {fault}" for kind in kinds if (fault := _format_fault(trust, kind))]
    because = f": for pages like {template}, {' and '.join(faults)}" if faults else ""
    doubted = [VALIDATOR_NAMES[kind] for kind in kinds if effective.get_stats(kind) != trust.get_stats(kind)]
    if doubted:
        because += f": {' and '.join(doubted)} failed all checks on other pages, and was not checked on these yet"
    sent = decisions.choose_validators(validators, effective)
    if not sent:
        return f"in full{because}"
    return f"conditional, with {' and '.join(VALIDATOR_NAMES[kind] for kind in _list_kinds(sent))}{because}"


def _format_fault(trust: ValidatorTrust, kind: Validator) -> str:
    record = trust.get_stats(kind)
    if not record.is_honest:
        return "stayed the same while pages changed"
    return "" if record.is_steady else "changes while pages do not"


def _list_kinds(validators: Validators) -> list[Validator]:
    return [kind for kind in SENT_VALIDATORS if decisions.get_validator_value(validators, kind)]


def describe_trust(trust: ValidatorTrust) -> dict[str, object]:
    """Return the validator statistics of a URL template as JSON."""
    return {
        "revisits": trust.revisits,
        "validator_checks": trust.validator_checks,
        "stats": {kind.value: asdict(record) for kind, record in trust.stats.items()},
    }


def format_trust(trust_rows: Sequence[TrustRow]) -> str:
    """List the URL templates with unreliable validators, or say that all are reliable; empty if nothing is known."""
    of_sent = [row for row in trust_rows if row.validator in SENT_VALIDATORS]
    faults = [_format_faulty_group(row) for row in of_sent if row.rating != "honest"]
    return "\n".join(faults) if faults else "reliable in all checks" if of_sent else ""


def _format_faulty_group(row: TrustRow) -> str:
    lies = row.rating == "lies"
    part = row.missed / row.changes_seen if lies else row.flapped / row.unchanged
    wrong = (
        f"unchanged at {part:.0%} of the changes" if lies else f"changed at {part:.0%} of the visits without a change"
    )
    figures = f"{wrong}; {row.validator_checks} checks"
    return f"{VALIDATOR_NAMES[row.validator]} of {row.template} {row.rating} ({figures})"
