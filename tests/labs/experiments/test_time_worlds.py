from pathlib import Path

import numpy as np
import pytest

from crawler.errors import BadInput
from labs.experiments import optimum
from labs.experiments.worlds import rhythm
from labs.experiments.worlds.populations import POPULATIONS, make_world
from labs.experiments.worlds.traces import History, read_trace
from labs.experiments.worlds.world import Modified, Segments, World, keys_of


def world_of(*changes: tuple[int, float], pages: int = 2, days: float = 20.0) -> World:
    page, at = np.array([c[0] for c in changes]), np.array([c[1] for c in changes])
    return World(
        name="by hand",
        days=days,
        importance=np.ones(pages),
        host=np.zeros(pages, np.int64),
        group=np.zeros(pages, np.int64),
        born=np.zeros(pages),
        died=np.full(pages, np.inf),
        edit=np.full(pages, 0.5),
        keys=keys_of(page, at, stride=days + 1),
        segments=Segments(np.arange(pages), np.zeros(pages), np.full(pages, 0.1)),
    )


def test_world_returns_next_and_last_changes_and_their_number() -> None:
    world = world_of((0, 3.0), (1, 5.0), (0, 9.0))
    both = np.array([0, 1])

    assert world.next_change(both, np.array([3.0, 4.9])).tolist() == [9.0, 5.0]
    assert (world.next_change(both, 10.0) > world.days).all()
    assert world.last_change(both, np.array([9.0, 4.0])) == pytest.approx([9.0, 0.0])
    assert world.changes_between(both, np.array([0.0, 5.0]), np.array([20.0, 20.0])).tolist() == [2, 0]


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_population_changes_as_often_as_its_true_rates_say(name: str) -> None:
    world = make_world(name, pages=600, days=300.0, seed=3)
    lived = np.minimum(world.died, world.days) - world.born
    steady = np.bincount(world.segments.page, minlength=world.size) == 1
    expected = (world.rates_at(world.days) * lived)[steady].sum()
    counts = world.changes_between(np.arange(world.size), world.born, np.minimum(world.died, world.days))[steady]

    # Bursts and waves are clustered, which spreads their sums more than Poisson's.
    assert counts.sum() == pytest.approx(expected, rel=0.1)
    assert world.importance.mean() == pytest.approx(1.0, rel=0.15)


def test_the_same_seed_gives_the_same_world_and_another_one_another() -> None:
    first, again, other = (make_world("log-normal", pages=50, days=50.0, seed=seed) for seed in (1, 1, 2))

    assert np.array_equal(first.keys, again.keys)
    assert not np.array_equal(first.keys[:20], other.keys[:20])


def test_bursts_vary_more_than_poisson_and_office_hours_leave_the_weekend_quiet() -> None:
    def gaps_vary(name: str) -> float:
        world = make_world(name, pages=800, days=400.0, seed=5)
        page, day = np.divmod(world.keys[:-1], world.stride)
        gaps = np.diff(day)[(page[1:] == page[:-1])]
        rate = world.rates_at(0.0)[page[1:][page[1:] == page[:-1]].astype(int)]
        often = rate > 0.2
        return float((gaps * rate)[often].std() / (gaps * rate)[often].mean())

    office = make_world("rhythms", pages=800, days=364.0, seed=5)
    weekday = (office.keys[:-1] % office.stride) % 7

    assert gaps_vary("log-normal") == pytest.approx(1.0, abs=0.1)
    assert gaps_vary("bursts") > 1.3
    assert ((weekday > 5.5) & (weekday < 6.0)).mean() < 0.03


def test_changes_become_visible_with_the_next_release() -> None:
    page, at = rhythm.released(
        np.random.default_rng(1), np.array([0, 0, 1]), np.array([0.0, 0.1, 99.9]), days=100.0, apart=10.0
    )

    assert page.tolist() == [0, 1]
    assert 0.1 < at[0] < 99.9 < at[1]
    world = make_world("releases", pages=200, days=200.0, seed=1)
    instants = np.unique(np.round(world.keys[:-1] % world.stride, 6))
    assert len(instants[instants < world.days]) < 40 < len(world.keys) / 10


def test_servers_send_false_last_modified_in_several_ways() -> None:
    worlds = {
        m: make_world(n, pages=50, days=50.0, seed=1) for n, m in (("honest", Modified.HONEST), ("echo", Modified.ECHO))
    }
    pages, at = np.arange(50), np.full(50, 40.0)

    assert np.array_equal(
        worlds[Modified.HONEST].modified_age(pages, at), at - worlds[Modified.HONEST].last_change(pages, at)
    )
    assert (worlds[Modified.ECHO].modified_age(pages, at) == 0).all()
    assert (make_world("frozen", pages=50, days=50.0, seed=1).modified_age(pages, at) > 40).all()


def test_the_optimum_of_five_pages_is_that_of_the_literature() -> None:
    # Cho and Garcia-Molina's example: rates 1 to 5, five visits per day; the fastest page is never visited.
    rates = np.arange(1.0, 6.0)
    visits = optimum.optimum(rates, np.ones(5), budget_per_day=5, host=np.zeros(5, np.int64), cap_per_day=None)

    assert visits == pytest.approx([1.15, 1.36, 1.35, 1.14, 0.0], abs=0.01)


def test_the_optimum_under_caps_uses_them_up_and_gives_the_rest_to_others() -> None:
    rng = np.random.default_rng(1)
    rates, host = rng.lognormal(-3, 1, 200), np.repeat([0, 1], [150, 50])
    visits = optimum.optimum(rates, np.ones(200), budget_per_day=6, host=host, cap_per_day=4.0)

    assert visits.sum() == pytest.approx(6.0, rel=1e-3)
    assert visits[host == 0].sum() <= 4.0 * 1.001


def test_a_trace_is_read_from_csv_and_from_jsonl(tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.write_text("page,changed_at\n/a,2026-01-01\n/a,2026-01-04T12:00:00+00:00\n/b,\n")
    lines.write_text('{"page": "/a", "changes": [0, 3.5], "importance": 2}\n{"page": "/b", "changes": []}\n')

    for trace in (read_trace(table), read_trace(lines)):
        assert trace.urls == ("/a", "/b")
        assert trace.days == 4.0
        assert trace.at.tolist() == [0.0, 3.5]
    assert read_trace(lines).world(1).importance.tolist() == pytest.approx([4 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.csv", "/a,soon\n", "line 1: 'soon'"),
        ("a.csv", "/a,1\n", "no two changes"),
        ("a.jsonl", "{", "is not a trace"),
        ("a.jsonl", '{"page": "/a"}', "is not a trace"),
        ("a.jsonl", '{"page": "/a", "changes": [1], "importance": -1}', "not above 0"),
    ],
)
def test_invalid_trace_is_an_error_with_the_reason(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(BadInput, match=complaint):
        read_trace(tmp_path / name)


def test_history_agrees_with_the_results_of_its_visits() -> None:
    looked = np.tile(np.arange(0.0, 50.0, 5.0), 2)
    found = np.array([False] * 10 + [False, True] * 5)
    history = History("a.test", 50.0, ("/still", "/lively"), np.ones(2), np.repeat([0, 1], 10), looked, found)
    pages = np.repeat([0, 1], 9)
    since, until = np.tile(looked[:9], 2), np.tile(looked[1:10], 2)

    for seed in range(5):
        counts = history.world(seed).changes_between(pages, since, until)
        assert (counts[:9] == 0).all()
        assert ((counts[9:] > 0) == found[11:]).all()
