"""The feed when everybody is killed; RECRAWL_FEED_ROUNDS=100 for the whole trial (also: python -m benchmarks feed)."""

import os

from benchmarks.feed.trial import name_of, one_round

ROUNDS = int(os.environ.get("RECRAWL_FEED_ROUNDS", "1"))


def test_each_change_is_taken_once_and_in_one_order_whoever_is_killed(postgres_url: str, template_url: str) -> None:
    for seed in range(ROUNDS):
        done = one_round(postgres_url, name_of(template_url), seed=seed)

        assert done.changes > done.at_dump > 0
        assert done.kills > 8
