from crawler.core.http.response import Validators
from crawler.core.validator_trust import NO_TRUST, YOUNG_REVISITS, Validator, ValidatorStats, ValidatorTrust
from crawler.format.trust import describe_trust, format_conditional_request

HELD = Validators('"1"')
LIED = ValidatorTrust(stats={Validator.ETAG: ValidatorStats(changes_seen=1, missed=1)})
SUSPECTED = frozenset({Validator.ETAG})


def test_unreliable_validators_of_the_group_and_of_others_are_distinguished() -> None:
    found = format_conditional_request(HELD, LIED, template="/blog/*", suspected=SUSPECTED)
    elsewhere = format_conditional_request(HELD, NO_TRUST, template="/shop/*", suspected=SUSPECTED)

    assert found == "in full: for pages like /blog/*, ETag stayed the same while pages changed"
    assert elsewhere == "in full: ETag failed all checks on other pages, and was not checked on these yet"


def test_a_suspicion_ends_with_youth_and_is_no_finding() -> None:
    grown = ValidatorTrust(revisits=YOUNG_REVISITS)

    assert format_conditional_request(HELD, grown, template="/shop/*", suspected=SUSPECTED) == "conditional, with ETag"
    assert describe_trust(NO_TRUST)["stats"] == {}
