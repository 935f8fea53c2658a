"""Which version of the page reader to use. The engine chooses; compiled_scan.py asks. Cheap to import."""

from msgspec import Struct

VARIABLE = "RECRAWL_READER"
PYTHON = "python"  # the value that turns the compiled version off


class _Choice(Struct):
    is_python: bool = False


_choice = _Choice()


def choose_reader(name: str) -> None:
    """Choose a version by the value of VARIABLE, before the first page is read. Any other value: the fastest one."""
    _choice.is_python = name.strip().lower() == PYTHON


def is_python_chosen() -> bool:
    """Return whether pages must be read in Python."""
    return _choice.is_python
