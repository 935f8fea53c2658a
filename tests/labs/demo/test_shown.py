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


def test_truth_report_rival_and_margin_stand_below_each_other() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["Fresh, as reported"] == "91.5 % of importance, 84.0 % of pages, on average over the days"
    assert shown["Fresh, in truth"] == "90.0 % of importance, 82.0 % of pages"
    assert shown["Each page in turn"] == (
        "81.0 % of importance, 83.0 % of pages, with as many requests after the first two crawls: 1,234"
    )
    assert shown["Margin"] == "+9.0 points of importance, -1.0 points of pages: ours over each page in turn"


def test_each_number_of_requests_says_what_it_counts() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["Requests"].splitlines() == [
        "1,700 in all, 24% of what fetching every page every day takes:",
        "466 of the first two crawls, which look at every page,",
        "1,234 of the days since, which may make 40 each",
    ]


def test_links_to_runs_come_with_the_command_that_prints_the_way_in() -> None:
    shown = dict(facts_of(OUTCOME, keep=True))

    assert shown["To log in there"] == "recrawl ui prints what the first page asks for"
