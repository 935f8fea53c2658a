"""The services of compose.yaml as local processes, with their commands, variables, secrets and health checks."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import yaml

from crawler.runtime.environment import PrefectApi
from crawler.runtime.machine import find_free_port
from crawler.runtime.service.health import get_heartbeat_file
from tests.patience import COSTLY_POLL_S, PATIENCE_S, until

DEPLOYMENTS = Path(__file__).parents[3] / "deployments"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOYMENTS / "compose" / "compose.yaml").read_text())
BIN = Path(sys.executable).parent
AUTH = "recrawl:a-word-of-the-tests"


@dataclass
class Place:
    """The environment of the services. host: host and port of Postgres.  databases: of the crawls and of Prefect."""

    folder: Path
    host: str
    databases: Mapping[str, str]
    password: str = field(repr=False)
    ports: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)  # overrides of a test
    limit: str = "4"  # concurrent runs of a worker

    def __post_init__(self) -> None:
        secrets = self.folder / "secrets"
        secrets.mkdir()
        (secrets / "database_password").write_text(self.password + "\n")
        (secrets / "prefect_auth").write_text(AUTH + "\n")
        for port in ("4200", "4280"):
            self.ports.setdefault(port, self.free(port))

    @property
    def api(self) -> PrefectApi:
        """The API of the Prefect server."""
        return PrefectApi(f"http://127.0.0.1:{self.ports['4200']}/api", AUTH)

    @property
    def database_url(self) -> str:
        return f"postgresql://recrawl:{self.password}@{self.host}/{self.databases['crawl']}"

    def free(self, key: str) -> int:
        return find_free_port(f"{self.folder} {key}", excluded=tuple(self.ports.values()))

    def here(self, text: str, *, replica: str) -> str:
        """Adapt a word of compose.yaml to this machine."""
        self.ports.setdefault(f"9464 {replica}", self.free(f"9464 {replica}"))
        for name, database in self.databases.items():
            text = text.replace(f"@postgres:5432/{name}", f"@{self.host}/{database}")
        text = text.replace("/run/secrets", str(self.folder / "secrets")).replace("//prefect:", "//127.0.0.1:")
        for port in ("4200", "4280", "9464"):
            taken = self.ports[f"{port} {replica}" if port == "9464" else port]
            text = re.sub(rf"(?<!\d){port}(?!\d)", str(taken), text)
        return re.sub(r"\$\{\w+:-(.*?)\}", r"\1", text)

    def home(self, replica: str) -> Path:
        return self.folder / replica

    def environment(self, service: str, replica: str) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("RECRAWL_", "PREFECT_"))}
        given = {
            name: self.here(str(value), replica=replica)
            for name, value in COMPOSE["services"][service]["environment"].items()
        }
        own = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "RECRAWL_HOME": str(self.home(replica))}
        return plain | given | own | {"RECRAWL_PROBE_SITEMAPS": "false"} | self.settings

    def command(self, service: str, replica: str) -> list[str]:
        words = [self.here(word, replica=replica) for word in COMPOSE["services"][service]["command"]]
        return ["recrawl", *(self.limit if before == "--limit" else word for before, word in pairwise(["", *words]))]

    def run(self, service: str, *words: str, replica: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the environment of a service, like `docker compose exec`; without words its own command."""
        name = replica or service
        return subprocess.run(
            list(words) or self.command(service, name),
            env=self.environment(service, name),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def is_well(self, service: str, replica: str = "") -> bool:
        """Run the health check of the service."""
        how, *words = COMPOSE["services"][service]["healthcheck"]["test"]
        assert how == "CMD"
        name = replica or service
        return self.run(service, *(self.here(word, replica=name) for word in words), replica=name).returncode == 0

    @contextmanager
    def running(self, service: str, replica: str = "") -> Iterator["Running"]:
        """Run a service during the block, which starts once it is healthy."""
        name = replica or service
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.command(service, name),
                env=self.environment(service, name),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Running(process, log)
        try:
            if service == "worker":  # the check is a process of a second, and false before this is there
                until(lambda: running.lives() and get_heartbeat_file(self.home(name)).exists())
            until(lambda: running.lives() and self.is_well(service, name), poll_s=COSTLY_POLL_S)
            yield running
        finally:
            running.end()


@dataclass
class Running:
    """A process of a service."""

    process: subprocess.Popen[bytes]
    log: Path

    def lives(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        return True

    def end(self) -> int:
        """Stop it like a container engine, wait, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill it with all child processes, like a power failure."""
        for each in [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]:
            each.kill()
        self.process.wait(PATIENCE_S)
