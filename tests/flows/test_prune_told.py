"""The artifact of the prune flow."""

from datetime import UTC, datetime

from crawler.prune import PruneStats
from flows.upkeep import render_pruned


def test_the_artifact_names_the_reader_that_holds_versions_back() -> None:
    held = PruneStats(
        "a.test",
        deferred_versions=1200,
        reader="subscription 3",
        reader_since=datetime(2026, 5, 1, 9, tzinfo=UTC),
        remedy="recrawl notify resume 3",
    )

    shown = render_pruned([held, PruneStats("b.test")], dry_run=False)

    said = "a.test: 1,200 versions are kept for subscription 3, which has not read the changes since 2026-05-01 09:00"
    assert f"{said} UTC (recrawl notify resume 3)." in shown
    assert shown.count("are kept for") == 1
