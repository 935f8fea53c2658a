import pytest

from crawler.cli.reference import DOCS, PAGES
from crawler.settings import Settings


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_what_the_program_does(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "python -m crawler.cli.reference"


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
