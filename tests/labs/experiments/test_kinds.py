"""Priors of kinds of sites, and their value in the first month of new domains."""

import numpy as np
import pytest

from crawler.core.freshness.prior import ALL_KINDS
from labs.experiments.kinds import MEDIAN_RATES, Start, Trial, compare_kinds, new_world, older_domains

SMALL = Trial(domains=24, pages=20, days=30, older=6)


def test_the_pages_of_a_kind_change_at_its_rates() -> None:
    world = new_world(Trial(domains=400, pages=20), seed=1)
    rates = np.log(world.rates_at(0.0)).reshape(400, 20)

    for n, median in enumerate(MEDIAN_RATES.values()):
        assert np.exp(np.median(rates[n :: len(MEDIAN_RATES)])) == pytest.approx(median, rel=0.2)


@pytest.mark.soak
def test_kinds_are_distinguished_by_visits_to_older_domains() -> None:
    by_kind = older_domains(SMALL, by_kind=True, seed=1)
    alike = older_domains(SMALL, by_kind=False, seed=1)
    rates = {each.kind: each.prior.rate_per_day for each in by_kind.learned}

    assert sorted(MEDIAN_RATES, key=MEDIAN_RATES.__getitem__) == sorted(MEDIAN_RATES, key=rates.__getitem__)
    assert rates["gov"] < 0.5 * rates[ALL_KINDS] < rates["com"]
    assert [each.kind for each in alike.learned] == [ALL_KINDS]
    assert [each.domains for each in by_kind.learned] == [6, 6, 6, 6, 24]


@pytest.mark.soak
def test_new_domains_are_fresher_if_their_kind_is_known_with_equal_requests() -> None:
    trial = Trial(domains=40, pages=20, days=12, older=6)
    rows = {row.start: row for row in compare_kinds(trial, [0.1], seeds=4)}

    assert rows[Start.KIND].gain.mean > 2 * rows[Start.KIND].gain.error > 0
    assert rows[Start.KIND].freshness.mean > rows[Start.ALL].freshness.mean
    assert rows[Start.OPTIMUM].freshness.mean > rows[Start.KIND].freshness.mean
    assert rows[Start.KIND].used.mean == pytest.approx(rows[Start.NOTHING].used.mean, abs=0.02)
    assert all(row.used.mean <= 1 for row in rows.values())
