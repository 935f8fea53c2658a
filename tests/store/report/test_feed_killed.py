"""The feed when writers and readers are killed. RECRAWL_FEED_ROUNDS=100: full run (or python -m benchmarks feed)."""

import os

import pytest

from benchmarks.feed import trial
from crawler.runtime.postgres.binaries import list_installations

ROUNDS = int(os.environ.get("RECRAWL_FEED_ROUNDS", "1"))
HAS_DUMP = bool(list_installations()) and (list_installations()[0].bin / "pg_dump").exists()


@pytest.mark.skipif(not HAS_DUMP, reason="this Postgres was installed without pg_dump")
def test_each_change_is_read_once_in_order_after_kills(
    postgres_url: str, template_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ROUNDS == 1:
        monkeypatch.setattr(trial, "KILLS", 3)  # in each half
    for seed in range(ROUNDS):
        done = trial.one_round(postgres_url, trial.name_of(template_url), seed=seed)

        assert done.changes > done.at_dump > 0
        assert done.kills > 8
