"""Each labelled pair of versions has one label, and is scored only if its files match the label."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.change.pairs import check, pairs, visits_of
from crawler.core.page.fingerprint import compute_digest
from tests.engine.corpus import CorpusError


def test_at_least_a_hundred_pairs_have_a_label_and_a_reason() -> None:
    labelled = pairs()
    labels = Counter(pair.label for pair in labelled)

    assert labels.keys() == {"changed", "same", "open"}
    assert labels["changed"] + labels["same"] >= 100
    assert len({pair.url for pair in labelled}) == len(labelled)
    assert all(pair.why and pair.kind and pair.digest_old != pair.digest_new for pair in labelled)
    assert all(len(bytes.fromhex(pair.digest_old)) == 16 for pair in labelled)


def test_page_that_differs_from_its_labelled_version_raises_an_error(tmp_path: Path) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    sides = []
    for n, text in enumerate(("old", "new")):
        root = tmp_path / text
        root.mkdir()
        (root / "a b.html").write_text(text, encoding="utf-8")
        sides.append(list(visits_of("package", ["a b.html"], root, at + n * timedelta(days=1))))
    pair = replace(
        pairs()[0],
        package="package",
        page="a b.html",
        digest_old=compute_digest(b"old").hex(),
        digest_new=compute_digest(b"new").hex(),
    )

    check([pair], sides)
    with pytest.raises(CorpusError, match="differs from the labeled version"):
        check([replace(pair, digest_new=compute_digest(b"newer").hex())], sides)
