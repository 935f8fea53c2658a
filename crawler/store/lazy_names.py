"""Names of a package that are imported on first use, because most callers need few of its modules."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def make_getattr(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose `__init__` imports its names only for type checkers.

    file: the `__init__.py`, from which the modules of the names are read.
    """

    @cache
    def find_modules() -> dict[str, str]:
        imports = [node for node in ast.walk(ast.parse(Path(file).read_bytes())) if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module or "" for node in imports for alias in node.names}

    def get_name(name: str) -> Any:
        module = "" if name.startswith("_") else find_modules().get(name, "")
        if not module.startswith(f"{package}."):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return get_name
