from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from crawler.core.budget.sample import PageSample, RefittedPriors, refit_all_priors
from crawler.core.freshness.estimates import PRIOR
from crawler.core.freshness.prior import ALL_KINDS, NO_KIND, KindPrior
from crawler.core.freshness.signals import SourceQuality

SLOW, FAST = 0.01, 0.5


def domain(pages: int, rate: float, *, revisited: int | None = None) -> PageSample:
    """Return fetched pages with an estimated change rate. Only the first `revisited` were revisited (default all)."""
    is_seen = np.arange(pages) < (pages if revisited is None else revisited)
    ones = np.ones(pages)
    return PageSample(
        is_new=np.zeros(pages, bool),
        rate_a=np.where(is_seen, 1000.0, 0.0),  # large enough that no prior matters
        rate_b=np.where(is_seen, 1000.0 / rate, 0.0),
        group=np.zeros(pages, np.intp),
        importance=ones,
        request_kind=np.zeros(pages, np.intp),
        min_interval=ones,
        max_interval=ones,
        follows=np.zeros(pages, bool),
        magnitude_total=ones,
        magnitude_changes=ones,
        silent_days=0 * ones,
        weight=ones,
        priors=(PRIOR,),
    )


def kind_in(found: RefittedPriors, kind: str) -> KindPrior:
    return next(each for each in found.kinds if each.kind == kind)


def rates(samples: Sequence[PageSample], kinds: Sequence[str]) -> dict[str, float]:
    return {each.kind: each.prior.rate_per_day for each in refit_all_priors(samples, kinds).kinds}


def test_kind_is_learned_from_its_domains_and_is_the_prior_of_a_domain_without_pages() -> None:
    learned = [domain(50, SLOW)] * 8 + [domain(50, FAST)] * 8
    found = refit_all_priors([*learned, domain(0, SLOW), domain(0, SLOW)], ["gov"] * 8 + ["com"] * 8 + ["gov", NO_KIND])
    everywhere = kind_in(found, ALL_KINDS)

    # Eight domains with a weight of 50 * 20 / 70 pages each, and 20 pages of all kinds: 14.9 % of the total.
    gov = kind_in(found, "gov").prior.rate_per_day
    assert gov == pytest.approx((114.3 * SLOW + 20 * everywhere.prior.rate_per_day) / 134.3, rel=0.01)
    assert kind_in(found, "com").prior.rate_per_day > 0.4
    assert (kind_in(found, "gov").pages, kind_in(found, "gov").domains) == (400.0, 8)
    assert (everywhere.pages, everywhere.domains) == (800.0, 16)
    new_gov, new_elsewhere = found.domains[-2:]
    assert new_gov[0] == kind_in(found, "gov").prior
    assert new_elsewhere[0] == everywhere.prior


def test_one_large_domain_does_not_dominate_its_kind() -> None:
    small = [domain(40, SLOW)] * 4
    alone, beside = rates(small, ["gov"] * 4), rates([*small, domain(20_000, FAST)], ["gov"] * 5)

    assert alone["gov"] < 2 * SLOW
    # (4 * 13.3 pages * SLOW + 20 * FAST + 20 * all) / (53.3 + 20 + 20); the large domain is almost all pages
    assert beside["gov"] == pytest.approx((53.3 * SLOW + 20 * FAST + 20 * beside[ALL_KINDS]) / 93.3, rel=0.01)
    assert beside[ALL_KINDS] > 0.95 * FAST


def test_domains_without_revisits_do_not_affect_their_kind() -> None:
    learned = [domain(50, SLOW)] * 4
    waiting = [domain(50, FAST, revisited=0)] * 30  # at PRIOR
    others = [domain(5000, FAST)]

    found = rates([*learned, *others, *waiting], ["gov"] * 4 + ["com"] + ["gov"] * 30)

    assert found["gov"] == pytest.approx((57.1 * SLOW + 20 * found[ALL_KINDS]) / 77.1, rel=0.01)


def test_kind_without_revisits_has_the_prior_of_all_and_without_data_the_default_prior() -> None:
    found = refit_all_priors([domain(2000, FAST), domain(30, FAST, revisited=0)], ["com", "gov"])
    nothing = refit_all_priors([domain(0, FAST)], ["gov"])

    gov, everywhere = kind_in(found, "gov").prior, kind_in(found, ALL_KINDS).prior
    assert (gov.a, gov.b) == pytest.approx((everywhere.a, everywhere.b))
    assert kind_in(found, "gov").domains == 0
    assert nothing.kinds[0].prior.rate_per_day == pytest.approx(PRIOR.rate_per_day)
    assert refit_all_priors([], []).kinds[0].prior.rate_per_day == pytest.approx(PRIOR.rate_per_day)


def test_domain_with_much_evidence_departs_from_its_kind() -> None:
    found = refit_all_priors([*[domain(50, SLOW)] * 8, domain(2000, FAST)], ["gov"] * 9)

    assert found.domains[-1][0].rate_per_day == pytest.approx(FAST, rel=0.02)


def test_silence_of_a_good_source_lowers_the_prior_rate() -> None:
    """Pages with a signal are visited. Without the silence about the others, they would represent all pages."""
    no_source = replace(domain(100, FAST, revisited=10), silent_days=np.where(np.arange(100) < 10, 0.0, 30.0))
    good_source = replace(no_source, source=SourceQuality(recall=0.8, noise=0.01))

    without, with_source = (
        refit_all_priors([each], [NO_KIND]).domains[0][0].rate_per_day for each in (no_source, good_source)
    )

    assert with_source < 0.75 * without


def test_first_revisits_of_a_site_set_the_expectation_for_its_other_pages() -> None:
    """120 of 600 pages are unchanged after four days, so the others are unlikely to change every twenty days."""
    quiet = domain(600, SLOW)
    quiet = replace(quiet, rate_a=0 * quiet.rate_a, rate_b=np.where(np.arange(600) < 120, 4.0, 0.0))

    assert refit_all_priors([quiet], [NO_KIND]).domains[0][0].rate_per_day < 0.8 * PRIOR.rate_per_day
