"""Run flows like the worker's processes, but forked from one that imported everything, which saves seconds per run."""

import os
import runpy
import subprocess
import sys
from importlib import import_module
from types import TracebackType
from typing import Self

from crawler.runtime.background_processes import ensure_tag
from crawler.runtime.environment import build_worker_environment
from crawler.runtime.stack import Stack
from tests.flows.stage import order

IMPORTED = ("prefect.flow_engine", "flows.crawl", "flows.notify", "flows.upkeep")


class Runner:
    """A process with the environment of a stack's worker."""

    def __init__(self, stack: Stack) -> None:
        self._api = stack.api
        tag = ensure_tag(stack.home)
        environment = build_worker_environment(stack.home, stack.api, tag=tag, database_url=stack.database_url)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, deployment: str, **parameters: object) -> str:
        """Run flow/deployment to its end without the worker; return the id of the run."""
        run = order(self._api, deployment, {"parameters": parameters, "state": {"type": "PENDING"}})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{run}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{run}\n"
        return run


def _serve() -> None:
    """Run the flow runs whose ids are read from stdin, one per line, and print each id when its run ends."""
    for module in IMPORTED:
        import_module(module)
    for line in sys.stdin:
        run = line.strip()
        child = os.fork()
        if child == 0:
            sys.argv = ["prefect.engine", run]
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True)
            sys.exit()
        os.waitpid(child, 0)
        sys.stdout.write(f"{run}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
