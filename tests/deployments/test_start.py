"""The initial SQL of the Postgres in compose and Kubernetes, run by psql as in the image."""

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import yaml

from crawler.runtime.postgres.client import find_program as program_named
from crawler.runtime.postgres.cluster import Cluster, ensure_postgres
from tests.commands import command

DEPLOYMENTS = Path(__file__).parents[2] / "deployments"
OPERATIONS = (DEPLOYMENTS.parent / "docs" / "operations.md").read_text(encoding="utf-8")
OF_COMPOSE = (DEPLOYMENTS / "compose" / "start.sql").read_text(encoding="utf-8")
CONFIG: dict[str, Any] = next(yaml.safe_load_all((DEPLOYMENTS / "kubernetes" / "postgres.yaml").read_text()))
OF_KUBERNETES: str = CONFIG["data"]["start.sql"]
SECRETS = {"/run/secrets/database_password": OF_COMPOSE, "/run/secrets/recrawl/database-password": OF_KUBERNETES}
PASSWORD = 'it\'s "of" the tests'


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Start a separate Postgres, because the test locks out its superuser."""
    home = Path(tempfile.mkdtemp(prefix="recrawl-start-"))
    home.chmod(0o755)
    found = ensure_postgres(home, durable=False)
    yield found
    found.stop()
    shutil.rmtree(home)


def statements(script: str) -> list[str]:
    return [line for line in script.splitlines() if line and not line.startswith(("--", "\\set"))]


def alone(granted: str) -> str:
    """Extract the password from `db grant --json` with the command in compose.yaml."""
    head = (DEPLOYMENTS / "compose" / "compose.yaml").read_text(encoding="utf-8").partition("\nname:")[0]
    (taken,) = re.findall(r"db grant grafana --json \| (sed .*) >", head)
    done = subprocess.run(["sh", "-c", taken], input=granted, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_compose_and_kubernetes_have_the_same_initial_sql() -> None:
    assert statements(OF_COMPOSE) == statements(OF_KUBERNETES)
    assert all(f"\\set password `cat {place}`" in script for place, script in SECRETS.items())


def of_postgres(program: str, *, port: int, file: Path, **others: str) -> None:
    """Run a Postgres command of docs/operations.md as in the container of compose."""
    (line,) = re.findall(rf"^docker compose exec -T postgres {program} (.*) [<>] crawl.dump$", OPERATIONS, re.MULTILINE)
    words = [others.get(word, word) for word in shlex.split(line)]
    environment = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGPASSWORD": PASSWORD}
    with file.open("ab+") as dump:
        dump.seek(0)
        command_line = [str(program_named("psql").with_name(program)), *words]
        subprocess.run(
            command_line, env=environment, stdin=dump, stdout=None if file.stat().st_size else dump, check=True
        )


@pytest.mark.soak
def test_services_work_without_superuser(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "start.sql").write_text(OF_COMPOSE.replace(next(iter(SECRETS)), str(tmp_path / "password")))
    admin = ["--dbname", cluster.build_url("postgres"), "--set", "ON_ERROR_STOP=1", "--no-psqlrc"]
    subprocess.run([program_named("psql"), *admin, "--file", tmp_path / "start.sql"], check=True, capture_output=True)

    url = f"postgresql://recrawl:{quote(PASSWORD)}@127.0.0.1:{cluster.port}/crawl"

    def run(*words: str) -> str:
        done = command(*words, database_url=url, home=tmp_path)
        assert done.code == 0, done.err
        return done.out

    run("db", "upgrade")
    run("domains", "add", "--offline", "https://docs.example.com")
    granted = run("db", "grant", "grafana", "--json")
    assert alone(granted) == json.loads(granted)["password"]
    assert "No inconsistency found in 1 domain" in run("db", "check")
    run("prune")
    run("db", "revoke", "grafana")

    of_postgres("pg_dump", port=cluster.port, file=tmp_path / "crawl.dump")
    of_postgres("pg_restore", port=cluster.port, file=tmp_path / "crawl.dump", crawl="prefect")
    copy = command("domains", "list", database_url=url.replace("/crawl", "/prefect"), home=tmp_path)
    assert "docs.example.com" in copy.out, copy.err

    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("COPY (SELECT 1) TO PROGRAM 'true'")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(cluster.build_url("postgres"))
