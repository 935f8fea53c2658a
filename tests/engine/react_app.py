"""An application made with React, React Router and Vite, built once from npm packages and kept."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from crawler.runtime.machine import hold_lock
from tests.engine.corpus import CACHE

SOURCES = Path(__file__).parent / "react_app"
PATIENCE_S = 200.0  # for npm, on a busy machine


def built_app() -> Path:
    """Return the folder of the built application; skip the test if npm cannot build it."""
    npm, kept = shutil.which("npm"), CACHE / "react_app"
    CACHE.mkdir(parents=True, exist_ok=True)
    with hold_lock(CACHE / "react_app.lock"):
        newest = max(each.stat().st_mtime for each in SOURCES.rglob("*"))
        if kept.is_dir() and kept.stat().st_mtime >= newest:
            return kept
        if npm is None:
            pytest.skip("there is no npm")
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            copy = Path(shutil.copytree(SOURCES, Path(folder, "react_app")))
            for command in ((npm, "install", "--no-audit", "--no-fund", "--no-package-lock"), (npm, "run", "build")):
                done = subprocess.run(
                    command, cwd=copy, check=False, capture_output=True, text=True, timeout=PATIENCE_S
                )
                if done.returncode:
                    pytest.skip(f"{' '.join(command[1:])} failed: {done.stderr.strip()[-200:]}")
            shutil.rmtree(kept, ignore_errors=True)
            (copy / "dist").rename(kept)
            kept.touch()
    return kept
