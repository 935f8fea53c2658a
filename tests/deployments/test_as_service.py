"""recrawl-as-service, which runs commands on the database of the systemd services."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.runtime.postgres.client import split_password
from tests.commands import RECRAWL, environ

SYSTEMD = Path(__file__).parents[2] / "deployments" / "systemd"
WRAPPER = SYSTEMD / "recrawl-as-service"
WORDS = ("db", "sql", "SELECT '$1 $$ ${HOME} 100%  it''s' AS said", "--json")
HOME = "/var/lib/recrawl/pages"
# Replaces systemd-run in the PATH and prints its arguments.
TELL = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


def run(*command: str | Path, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(command), capture_output=True, text=True, check=False, timeout=120, **given)


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Return the arguments of systemd-run for a command."""
    tell = tmp_path / "bin" / "systemd-run"
    tell.parent.mkdir()
    tell.write_text(TELL)
    tell.chmod(0o755)
    done = run(WRAPPER, *WORDS, env={"PATH": f"{tell.parent}:/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    words: list[str] = json.loads(done.stdout)
    return words


def properties(given: list[str]) -> list[str]:
    return [word.partition("=")[2] for word in given if word.startswith("--property=")]


def line(given: list[str]) -> list[str]:
    return given[next(n for n, word in enumerate(given) if not word.startswith("--")) :]


def as_systemd_does(word: str, **values: str) -> str:
    """Expand variables in braces and doubled dollars like systemd.service(5)."""
    return re.sub(r"\$(?:(\$)|\{(\w+)\})", lambda found: found[1] or values.get(found[2], ""), word)


def test_command_arrives_unchanged_with_the_password_of_the_credentials(
    given: list[str], database_url: str, tmp_path: Path
) -> None:
    url, password = split_password(database_url)
    (tmp_path / "database-password").write_text(f"{password or 'none'}\n")
    (tmp_path / "prefect-auth").write_text("recrawl:none\n")
    words = [as_systemd_does(word, CREDENTIALS_DIRECTORY=str(tmp_path)) for word in line(given)]
    words = [word.replace("/opt/recrawl/bin/recrawl", str(RECRAWL)).replace(HOME, str(tmp_path)) for word in words]

    done = run(*words, env=environ(url, tmp_path / "another home"))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == [{"said": "$1 $$ ${HOME} 100%  it's"}]
    assert not (tmp_path / "another home").exists()


def test_it_has_the_settings_of_the_web_ui() -> None:
    text, unit = WRAPPER.read_text(), (SYSTEMD / "recrawl-pages.service").read_text()
    for key in ("StateDirectory", "WorkingDirectory", "UMask", "NoNewPrivileges", "EnvironmentFile", "LoadCredential"):
        assert re.findall(rf"--property=({key}=\S+)", text) == re.findall(rf"^({key}=\S+)$", unit, re.MULTILINE), key
    told = re.findall(r"\b(\w+_FILE=)\$\{CREDENTIALS_DIRECTORY\}(/\S+)'", text)
    assert told == re.findall(r"^Environment=(\w+_FILE=)%d(/\S+)$", unit, re.MULTILINE)
    assert f"RECRAWL_HOME={HOME} " in text
    assert f"Environment=RECRAWL_HOME={HOME}\n" in unit


def test_systemd_accepts_its_properties_and_options(given: list[str], tmp_path: Path) -> None:
    for name in ("systemd-analyze", "systemd-run"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} on this machine: apt-get install systemd")
    command = shlex.join(line(given)).replace("/opt/recrawl/bin/recrawl", str(RECRAWL))
    unit = tmp_path / "as-service.service"
    unit.write_text("\n".join(["[Service]", *properties(given), "User=recrawl", f"ExecStart={command}", ""]))
    verified = run("systemd-analyze", "verify", "--man=no", unit)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")

    if not Path("/run/systemd/system").exists():  # otherwise it would run with the account of the services
        done = run(WRAPPER, *WORDS)
        assert "not been booted with systemd" in done.stderr + done.stdout  # and no error about its options
        assert done.returncode == 1
