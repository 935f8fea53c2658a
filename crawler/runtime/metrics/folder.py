"""The folder in which processes of a home leave their counts: a file each, and one for those that have ended."""

import json
from pathlib import Path
from typing import Any

from crawler.runtime.machine import Process, held
from crawler.runtime.metrics.tally import Tally
from crawler.runtime.private import private_folder, write_private

TOTAL = "total.json"
LOCK = "lock"


def metrics_folder(home: Path) -> Path:
    """The folder of a home; counted is only where it is there, which whoever serves metrics sees to."""
    return home / "run" / "metrics"


def ensure_metrics_folder(home: Path) -> Path:
    """The folder, made where it is not there."""
    private_folder(home, "run")
    folder = metrics_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_counts(file: Path, counting: Process, tally: Tally) -> None:
    """Leave what a process has counted; the folder is there."""
    document = {"pid": counting.pid, "birth": counting.birth, "tally": tally.as_json()}
    write_private(file, json.dumps(document))


def totals(folder: Path) -> Tally:
    """What all processes have counted, those that live and those that have ended.

    Files of ended processes are taken into one, so that the folder stays small. Whatever kills this in between, each is
    counted once: the one file says which it holds, before these are removed.
    """
    with held(folder / LOCK):
        kept = _read(folder / TOTAL) or {}
        total, taken = Tally.of_json(kept.get("tally", {})), set(kept.get("taken", ()))
        living, ended = Tally(), []
        for file in sorted(folder.glob("*-*.json")):
            document = _read(file)
            if file.name in taken or document is None:  # a killed process leaves none that is half written
                ended.append(file)
            elif Process(document["pid"], document["birth"]).is_running():
                living.add(Tally.of_json(document["tally"]))
            else:
                total.add(Tally.of_json(document["tally"]))
                ended.append(file)
        if ended:
            document = {"tally": total.as_json(), "taken": [file.name for file in ended]}
            write_private(folder / TOTAL, json.dumps(document))
            for file in ended:
                file.unlink(missing_ok=True)
    living.add(total)
    return living


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found
