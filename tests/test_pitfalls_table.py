"""The table of failures of other crawlers in the documentation; `python -m tests.test_pitfalls_table` writes it."""

from collections.abc import Iterator
from pathlib import Path

from tests import test_pitfalls_change_and_lifecycle, test_pitfalls_scheduling

DOCUMENT = Path(__file__).parents[1] / "docs" / "pitfalls.md"
TITLE = """# Failures of other crawlers, and the tests that cover them

Which mistakes of other crawlers does recrawl avoid? The list comes from the sources and issue trackers of the named
crawlers. The tests of each row fail if recrawl makes the same mistake. `python -m tests.test_pitfalls_table` generates
this page from the tests.
"""


def table() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield TITLE
    for heading, failures in {**test_pitfalls_change_and_lifecycle.SHOWN, **test_pitfalls_scheduling.SHOWN}.items():
        yield f"## {heading}\n\n| failure | tests |\n|---|---|"
        for failure, tests in failures.items():
            names = [f"`{test.__module__.replace('.', '/')}.py::{test.__name__}`" for test in tests]
            yield f"| {failure} | {'<br>'.join(names)} |"
        yield ""


def test_the_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == table(), "python -m tests.test_pitfalls_table"


def test_every_named_test_exists() -> None:
    named = [part for part in table().split("`") if "::" in part]
    assert len(named) > 50
    for name in named:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (DOCUMENT.parents[1] / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    DOCUMENT.write_text(table(), encoding="utf-8")
