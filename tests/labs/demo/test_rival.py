"""The rival is a fair one: it looks as often, knows the same pages, and is lied to alike."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from labs.demo.rival import copied, in_turn, match
from labs.demo.site import Behaviour, Serving, Site
from labs.experiments.visits import ReplayedLook
from tests.labs.demo.conftest import START

DAY = timedelta(days=1)
END = START + 30 * DAY


def known_at_the_start(site: Site) -> dict[str, list[datetime]]:
    return {path: [START] for path in site.paths(START)}


def is_there_throughout(site: Site, path: str) -> bool:
    sheet = site.sheet(path)
    return sheet.until is None and sheet.broken is None and sheet.serving is not Serving.LIAR_FROZEN


def test_every_page_gets_its_turn_as_often_as_any_other_and_at_even_distances(site: Site) -> None:
    visits = in_turn(site, known_at_the_start(site), requests=1200, since=START, until=END)

    lasting = [seen for path, seen in visits.items() if is_there_throughout(site, path)]
    gaps = [after - before for seen in lasting for before, after in pairwise(seen[1:])]
    assert max(map(len, lasting)) - min(map(len, lasting)) <= 1
    assert max(gaps) - min(gaps) < 0.2 * max(gaps)  # it shortens as pages go


def test_as_many_requests_are_made_as_the_crawl_made(site: Site) -> None:
    lasting = {path: [START] for path in site.paths(START) if is_there_throughout(site, path)}

    visits = in_turn(site, lasting, requests=777, since=START, until=END)

    assert sum(map(len, visits.values())) == len(lasting) + 777


def test_a_new_page_is_first_met_when_the_crawl_meets_it_and_that_costs_a_request(site: Site) -> None:
    late = next(p for p, s in site.sheets_by_path.items() if s.since and START + 5 * DAY < s.since < START + 20 * DAY)
    met = START + 21 * DAY
    lasting = {path: [START] for path in site.paths(START) if is_there_throughout(site, path)}

    visits = in_turn(site, lasting | {late: [met, met + DAY]}, requests=600, since=START, until=END)

    assert visits[late][0] == met
    assert met + DAY not in visits[late]
    assert sum(map(len, visits.values())) == len(lasting) + 600


def test_a_page_that_is_gone_costs_one_request_and_no_more(site: Site) -> None:
    gone = next(s for s in site.sheets_by_path.values() if s.behaviour is Behaviour.VANISHING)
    steady = next(path for path, s in site.sheets_by_path.items() if s.behaviour is Behaviour.STEADY and not s.broken)
    assert gone.until is not None

    visits = in_turn(site, {gone.path: [START], steady: [START]}, requests=300, since=START, until=END)

    assert all(at < gone.until for at in visits[gone.path])
    assert sum(map(len, visits.values())) == 2 + 299


def test_a_look_that_is_told_a_lie_copies_nothing(site: Site) -> None:
    frozen, honest = (
        next(path for path, s in site.sheets_by_path.items() if s.serving is serving and s.changes)
        for serving in (Serving.LIAR_FROZEN, Serving.BOTH)
    )
    visits = [
        ReplayedLook(START, changed=False),
        ReplayedLook(START + DAY, changed=False),
        ReplayedLook(START + 2 * DAY, changed=True),
    ]

    times = copied(site, {frozen: visits, honest: visits})

    assert times == {frozen: [START, START + 2 * DAY], honest: [look.at for look in visits]}
    assert in_turn(site, {frozen: [START]}, requests=50, since=START, until=END)[frozen] == [START]


def test_who_spends_all_requests_on_pages_that_never_change_is_below_uniform(site: Site) -> None:
    times = known_at_the_start(site)
    steady = [path for path in times if site.behaviour(path) is Behaviour.STEADY]
    for n in range(1200):
        times[steady[n % len(steady)]].append(START + (n + 1) / 1200 * (END - START))

    found = match(site, times, importances={}, requests=1200, since=START, until=END)

    assert found.margin.plain < -0.05
    assert found.ours.plain == found.ours.weighted


def test_who_knows_when_pages_change_is_above_uniform(site: Site) -> None:
    times = known_at_the_start(site)
    slow = [path for path in times if 0 < len(site.changes(path, START, END)) <= 5 and is_there_throughout(site, path)]
    for path in slow:
        times[path] += site.changes(path, START, END)
    made = sum(map(len, times.values())) - len(times)

    found = match(site, times, importances=dict.fromkeys(slow, 9.0), requests=made, since=START, until=END)

    assert found.requests == made
    assert found.margin.plain > 0.05
    assert found.margin.weighted > found.margin.plain


def test_without_requests_both_are_alike(site: Site) -> None:
    found = match(site, known_at_the_start(site), importances={}, requests=0, since=START, until=END)

    assert found.margin.plain == found.margin.weighted == 0
    assert found.ours.plain == pytest.approx(found.uniform.plain)
