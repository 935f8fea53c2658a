"""Freshness: how often pages change, and the value of a look.

`belief` holds a Gamma over a page's Poisson change rate; `value` is the gain of a look; `due_gap` says when it is
worth its price; `select` takes the best of the pages that are due. Uses cash, page and http.
"""

from crawler.core.freshness.amount import (
    MOST_UNSEEN,
    NO_AMOUNTS,
    USUAL_AMOUNT,
    Amounts,
    ChangeValue,
    UsualAmount,
    amount_factor,
    amount_of,
    amount_of_bits,
    bits_of_amount,
    expected_amount,
    factor_of,
    factors_of,
    learn_amount,
    refit_amounts,
    with_change,
)
from crawler.core.freshness.belief import (
    DAY,
    PRIOR,
    Belief,
    chance_changed_of_one,
    chance_fresh,
    change_expected,
    changed,
    changed_at,
    credible_interval,
    credible_rates,
    fade,
    faded,
    is_believable,
    learn_changed,
    learn_changed_at,
    learn_same,
    same,
)
from crawler.core.freshness.calibration import Agreement, pooled_agreement
from crawler.core.freshness.gamma import Floats, Numbers
from crawler.core.freshness.policies import (
    BY_PRICE,
    BY_SIMILARITY,
    FIRST_PERIOD,
    Looked,
    PricePolicy,
    RevisitPolicy,
    policy_of,
    policy_or_price,
)
from crawler.core.freshness.prior import (
    ALL_KINDS,
    ELSEWHERE,
    NO_KIND,
    KindPrior,
    Moments,
    group_of,
    in_kind,
    moments,
    pooled,
    prior_of_kind,
    refit,
    site_kind,
    template_of,
    with_prior,
    without_prior,
)
from crawler.core.freshness.selection import (
    CandidateColumns,
    Candidates,
    DayBudget,
    Selection,
    candidates_of,
    due_again,
    joined,
    select,
    select_requested_first,
)
from crawler.core.freshness.shared_schedule import (
    ENOUGH_LOOKS,
    LEAST_SHARED_BYTES,
    TEST_COPY_AFTER,
    SharedPair,
    Twin,
    rests_until,
    sharers,
    stem_of,
)
from crawler.core.freshness.signals import (
    NO_SOURCE,
    SOURCE_NAME,
    ChangeSignal,
    Heard,
    SignalSource,
    SourceWorth,
    changed_heard,
    days_ahead,
    heard_about,
    heard_days,
    heard_days_of_one,
    heard_from,
    heard_of,
    learn_changed_heard,
    loudest,
    recall_of,
    signals_per_day,
    worth_has_moved,
)
from crawler.core.freshness.site_activity import (
    EVEN,
    REMEMBERED,
    Findings,
    SiteActivity,
    days_of_activity_ahead,
    site_activity,
)
from crawler.core.freshness.source_record import NEVER_HEARD, SourceRecord, arrived, record_after
from crawler.core.freshness.terms import COME_FIRST, REQUESTED, USUAL_TERMS, Defaults, Terms, Wanted
from crawler.core.freshness.value import (
    NOT_ZERO,
    PlannedSource,
    aged_before_look,
    due_gap,
    first_gap,
    first_values,
    fresh_days,
    gap_worth,
    interval,
    mean_gap,
    phase_of,
    values_heard,
    weight_of,
    weights_of,
)
