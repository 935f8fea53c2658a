"""The table of other crawlers' failures in the documentation; `python -m tests.test_pitfalls_table` makes it again."""

from collections.abc import Iterator
from pathlib import Path

from tests import test_pitfalls_change_and_lifecycle, test_pitfalls_scheduling

DOCUMENT = Path(__file__).parents[1] / "docs" / "pitfalls.md"
TITLE = """# How other crawlers fail, and what shows that this one does not

Read from the sources and issue trackers of the crawlers that are named. Each failure has tests that fail where the code
does the same. `python -m tests.test_pitfalls_table` makes this page from what the tests say.
"""


def table() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield TITLE
    for heading, failures in {**test_pitfalls_change_and_lifecycle.SHOWN, **test_pitfalls_scheduling.SHOWN}.items():
        yield f"## {heading}\n\n| failure | shown by |\n|---|---|"
        for failure, tests in failures.items():
            names = [f"`{test.__module__.replace('.', '/')}.py::{test.__name__}`" for test in tests]
            yield f"| {failure} | {'<br>'.join(names)} |"
        yield ""


def test_the_table_in_the_documentation_is_what_the_tests_say() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == table(), "python -m tests.test_pitfalls_table"


def test_every_test_in_the_table_is_there_to_be_run() -> None:
    named = [part for part in table().split("`") if "::" in part]
    assert len(named) > 50
    for name in named:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (DOCUMENT.parents[1] / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    DOCUMENT.write_text(table(), encoding="utf-8")
