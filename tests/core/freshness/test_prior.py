import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness.estimates import PRIOR, RateEstimate, learn_changed, learn_unchanged
from crawler.core.freshness.prior import (
    MAX_SHAPE,
    MIN_SHAPE,
    OTHER_TEMPLATES,
    Moments,
    add_prior,
    choose_group,
    compute_moments,
    compute_prior_moments,
    derive_template,
    fit_priors,
    pool_moments,
    refit_priors,
    shrink_moments,
    subtract_prior,
)
from crawler.core.http.urls import Url

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("https://a.example/", "/"),
        ("https://a.example/about", "/*"),
        ("https://a.example/blog/", "/blog/"),
        ("https://a.example/blog/2024/05/a-post.html", "/blog/#/*/*.html"),
        ("https://a.example/blog/2023/11/other.HTML", "/blog/#/*/*.html"),
        ("https://a.example/docs/api/json.html", "/docs/api/*.html"),
        ("https://a.example/3f2504e04f8911d3/view", "/*/*"),
        ("https://a.example/list?page=3&id=7", "/*?id&page"),
        ("https://a.example/list?1234=5", "/*?"),
    ],
)
def test_template_keeps_the_section_and_masks_the_rest(url: str, template: str) -> None:
    assert derive_template(Url(url)) == template


@given(path=st.text(alphabet="ab1-./?&=%", max_size=60))
def test_every_url_has_a_short_template(path: str) -> None:
    assert len(derive_template(Url("https://a.example/" + path))) < 200


def test_number_of_groups_of_a_domain_is_bounded() -> None:
    known: set[str] = set()
    for n in range(2000):
        section = "".join(chr(ord("a") + int(digit)) for digit in str(n))
        known.add(choose_group(Url(f"https://a.example/{section}/page"), known, max_groups=50))

    assert len(known) == 51
    assert OTHER_TEMPLATES in known
    assert choose_group(Url("https://a.example/a/other"), known, max_groups=50) == "/a/*"


def test_refits_recover_the_true_prior() -> None:
    rng = np.random.default_rng(3)
    rates, group = rng.gamma(0.8, 1 / 20, 3000), np.zeros(3000, dtype=np.intp)
    prior = PRIOR
    evidence = np.zeros(3000), np.zeros(3000)
    for _ in range(25):
        gap = rng.exponential(10, 3000)
        found = rng.random(3000) < -np.expm1(-rates * gap)
        rate_estimate = add_prior(*evidence, prior.a, prior.b)
        up, down = learn_changed(*rate_estimate, gap), learn_unchanged(*rate_estimate, gap)
        learnt = np.where(found, up[0], down[0]), np.where(found, up[1], down[1])
        evidence = subtract_prior(*learnt, prior.a, prior.b)
        found_moments = compute_moments(*add_prior(*evidence, prior.a, prior.b), group, group_count=1)
        prior = refit_priors(found_moments, everywhere=pool_moments(found_moments))[2]

    assert prior.a == pytest.approx(0.8, rel=0.1)
    assert prior.rate_per_day == pytest.approx(rates.mean(), rel=0.05)


def test_empty_group_has_the_prior_of_its_domain_and_large_group_its_own() -> None:
    slow, fast = 0.01, 1.0
    templates = Moments(
        pages=np.array([100_000.0, 100_000.0, 0.0]),
        rate=np.array([slow, fast, 0.0]),
        log_rate=np.log([slow, fast, 1.0]) - 0.5,
    )

    a0, b0, domain = refit_priors(templates, everywhere=pool_moments(templates))

    assert a0[0] / b0[0] == pytest.approx(slow, rel=0.05)
    assert a0[1] / b0[1] == pytest.approx(fast, rel=0.05)
    assert a0[2] / b0[2] == pytest.approx(domain.rate_per_day)
    assert slow < domain.rate_per_day < fast


def test_domain_without_visits_has_the_default_prior() -> None:
    nothing = compute_moments(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp), group_count=2)

    a0, b0, domain = refit_priors(nothing, everywhere=pool_moments(nothing))

    assert (domain.a, domain.b) == pytest.approx((PRIOR.a, PRIOR.b), rel=1e-6)
    assert a0 == pytest.approx([PRIOR.a] * 2, rel=1e-6)
    assert b0 == pytest.approx([PRIOR.b] * 2, rel=1e-6)


@given(a=st.floats(0.1, 20), b=st.floats(1e-4, 1e4))
def test_fit_of_the_moments_of_a_gamma_returns_that_gamma(a: float, b: float) -> None:
    a0, b0 = fit_priors(compute_prior_moments(RateEstimate(a, b)))

    assert float(a0) == pytest.approx(a, rel=1e-5)
    assert float(b0) == pytest.approx(b, rel=1e-5)


@given(
    pages=st.lists(st.tuples(st.floats(1e-2, 1e5), st.floats(1e-4, 1e5)), min_size=1, max_size=20),
    lean=st.floats(1, 100),
)
def test_refitted_priors_are_always_valid(pages: list[tuple[float, float]], lean: float) -> None:
    a, b = np.array(pages).T
    group = np.arange(len(pages), dtype=np.intp) % 3

    a0, b0 = fit_priors(
        shrink_moments(compute_moments(a, b, group, group_count=3), compute_prior_moments(PRIOR), shrinkage_pages=lean)
    )

    assert np.all((a0 >= MIN_SHAPE) & (a0 <= MAX_SHAPE))
    assert np.all((b0 > 0) & np.isfinite(b0))


@given(
    evidence=st.tuples(st.floats(-1e-9, 1e6), st.floats(-1e-9, 1e6)),
    prior=st.tuples(st.floats(0.1, 20), st.floats(1e-6, 1e6)),
)
def test_stored_evidence_plus_any_prior_is_a_valid_estimate(
    evidence: tuple[float, float], prior: tuple[float, float]
) -> None:
    a, b = add_prior(*evidence, *prior)

    assert a > 0
    assert b > 0
    again_a, again_b = subtract_prior(a, b, *prior)
    assert float(again_a) == pytest.approx(max(evidence[0], 0), abs=1e-6)
    assert float(again_b) == pytest.approx(max(evidence[1], 0), abs=1e-6)
