"""What the demo prints at its end says in plain words how it compares with every page in turn."""

from labs.demo.command import facts_of
from labs.demo.outcome import DemoOutcome
from labs.demo.rival import Freshness, Match
from labs.demo.site import VerdictTally

OURS, UNIFORM = Freshness(plain=0.82, weighted=0.9), Freshness(plain=0.83, weighted=0.81)
MATCH = Match(requests=1234, ours=OURS, uniform=UNIFORM)
OUTCOME = DemoOutcome(
    domain="127.0.0.1:8001",
    days=31,
    pages=230,
    freshness_reported=0.8,
    freshness_true=0.8,
    freshness_mean=0.8,
    reported=Freshness(plain=0.84, weighted=0.915),
    match=MATCH,
    margin=MATCH.margin,
    changes=VerdictTally(happened=10, found=5, merged=3, pending=2, before=0),
    recognised=5,
    lied_away=0,
    false_alarms=0,
    requests=1700,
    requests_daily=7000,
    received_bytes=10,
    received_daily_bytes=100,
    saved_bytes=5,
    runs=(),
    ui_url="",
)


def test_reported_true_and_uniform_freshness_are_shown_with_the_gain() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["Reported freshness"] == "91.5% of importance, 84% of pages, on average over the days"
    assert shown["True freshness"] == "90% of importance, 82% of pages"
    assert shown["Uniform revisits"] == (
        "81% of importance, 83% of pages, with as many requests after the first two crawls: 1,234"
    )
    assert shown["Gain"] == "+9.0 points of importance, -1.0 points of pages, compared with uniform revisits"


def test_each_number_of_requests_is_explained() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["Requests"].splitlines() == [
        "1,700 in total, 24% of what fetching every page daily takes:",
        "466 in the first two crawls, which fetch every page,",
        "1,234 in the days after them, at most 40 per day",
    ]


def test_links_to_runs_come_with_the_command_that_prints_the_login() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["Prefect login"] == "run recrawl ui to print it"
