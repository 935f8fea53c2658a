from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawler.core.http.urls import Url
from crawler.errors import CrawlerError
from labs.experiments.cli.replay import history_of
from labs.experiments.visits import ReplayedLook
from tests.commands import Recrawl

SMALL = ("run", "--pages", "60", "--days", "40", "--seeds", "1", "--policy", "ours", "--policy", "uniform")
START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_run_prints_a_table_for_each_budget_and_how_far_the_best_rival_is(labs: Recrawl, tmp_path: Path) -> None:
    done = labs(*SMALL, "--budget", "5%", "--budget", "0.2", "--figures", str(tmp_path / "figures"))

    assert done.code == 0
    assert "requests for 5% of the pages a day" in done.out
    assert "requests for 20% of the pages a day" in done.out
    assert "The best rival is uniform" in done.out
    assert (tmp_path / "figures" / "time-log-normal.svg").read_text().startswith("<svg")


def test_a_run_prints_json_and_nothing_else(labs: Recrawl) -> None:
    found = labs(*SMALL, "equal", "--budget", "5%", "--json").json["rows"]

    assert [(row["world"], row["policy"], row["share"]) for row in found] == [
        ("equal", "ours", 0.05),
        ("equal", "uniform", 0.05),
    ]


@pytest.mark.soak
def test_each_mechanism_is_switched_in_a_table_of_its_own(labs: Recrawl) -> None:
    small = ("mechanisms", "--pages", "20", "--days", "20", "--seeds", "2", "--budget", "10%")
    done = labs(*small, "equal", "drift")

    assert done.code == 0
    assert "no activity" in done.out
    assert [line.split()[0] for line in done.out.splitlines()[-2:]] == ["equal", "drift"]


def test_a_trace_is_replayed_from_its_file(labs: Recrawl, tmp_path: Path) -> None:
    trace = tmp_path / "seen.csv"
    trace.write_text("".join(f"/{page},{day}\n" for page in range(12) for day in range(0, 40, page + 1)))
    done = labs("run", "--trace", str(trace), "--budget", "20%", "--policy", "uniform", "--seeds", "1", "--json")

    assert [row["world"] for row in done.json["rows"]] == ["seen"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere",), "unknown world 'nowhere'; choose one of log-normal"),
        (("--policy", "luck"), "unknown policy 'luck'; choose one of ours"),
        (("--budget", "0%"), "not above 0"),
        (("--trace", "missing.csv"), "missing.csv"),
    ],
)
def test_invalid_run_is_an_error_with_the_reason(labs: Recrawl, arguments: tuple[str, ...], complaint: str) -> None:
    done = labs("run", *arguments)

    assert done.code == 2
    assert complaint in done.complaint


@pytest.mark.soak
def test_first_month_of_new_domains_is_compared_by_prior(labs: Recrawl) -> None:
    small = ("kinds", "--domains", "4", "--pages", "5", "--days", "6", "--older", "1", "--seeds", "2")
    done = labs(*small, "--budget", "10%")
    found = labs(*small, "--json").json

    assert "as their kind of site does" in done.out
    assert [(row["share"], row["start"]) for row in found["rows"]] == [
        (share, start) for share in (0.03, 0.1) for start in ("nothing", "all", "kind", "optimum")
    ]
    assert found["median_rates_per_day"]["gov"] == pytest.approx(1 / 120)


def test_dais_experiment_and_the_estimators_print_their_tables(labs: Recrawl) -> None:
    dai = labs("dai", "--pages", "5", "--visits", "10")
    biases = labs("estimator", "--pages", "100", "--json")

    assert "redundant visits saved" in dai.out
    assert {"ours", "naive", "padded"} <= set(biases.json["points"][0])


def test_visits_of_a_domain_become_a_history_and_too_few_are_an_error() -> None:
    visits = {Url("http://a.test/"): [ReplayedLook(START + timedelta(days=day), changed=day > 3) for day in range(6)]}
    history, per_day = history_of("a.test", visits, {Url("http://a.test/"): 2.0})

    assert history.days == 5.0
    assert history.found.tolist() == [False, False, False, False, True, True]
    assert per_day == pytest.approx(6 / 5)
    with pytest.raises(CrawlerError, match="needs 4"):
        history_of("a.test", {}, {})


def test_an_unregistered_domain_has_no_history(labs: Recrawl) -> None:
    done = labs("replay-domain", "nowhere.test")

    assert done.code == 2
    assert "nowhere.test" in done.complaint
