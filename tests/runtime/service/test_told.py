"""Settings of services: secrets in files, and messages about missing settings."""

import json
import subprocess
from pathlib import Path

import pytest
from pydantic import SecretStr

from crawler.core.http.credentials import SecretReference, SecretSource
from crawler.errors import BadInput
from crawler.runtime.secrets import build_secret_finder
from crawler.secret_files import add_password, read_variable
from crawler.settings import Settings
from tests.commands import RECRAWL, Recrawl, environ, run_here


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me@db:5432/crawl", "postgresql://me:a%2Fb%20c%40@db:5432/crawl"),
        ("postgresql://me:own@db/crawl", "postgresql://me:own@db/crawl"),
        ("postgresql://db/crawl", "postgresql://db/crawl"),
        ("postgresql://me@[::1]:5432/x?sslmode=require", "postgresql://me:a%2Fb%20c%40@[::1]:5432/x?sslmode=require"),
    ],
)
def test_password_is_added_to_a_url_with_a_user(url: str, expected: str) -> None:
    assert add_password(url, "a/b c@") == expected


def test_secret_is_read_from_the_file_of_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("of the file\n")
    monkeypatch.delenv("RECRAWL_DATABASE_PASSWORD", raising=False)
    monkeypatch.setenv("RECRAWL_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    monkeypatch.setenv("RECRAWL_DATABASE_URL", "postgresql://me@db/crawl")
    monkeypatch.setenv("RECRAWL_PREFECT_DATABASE_URL", "postgresql://me@db/prefect")

    found = Settings()

    assert found.database_url == SecretStr("postgresql://me:of%20the%20file@db/crawl")
    assert found.prefect_database_url == SecretStr("postgresql://me:of%20the%20file@db/prefect")
    assert "of the file" not in repr(found)


def test_variable_has_precedence_over_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "own")
    monkeypatch.setenv("A_KEY_FILE", str(tmp_path / "nothing"))
    assert read_variable("A_KEY") == "own"


def test_unreadable_file_gives_a_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    monkeypatch.setenv("A_KEY_FILE", str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match=r"A_KEY_FILE: .* cannot be read: No such file"):
        read_variable("A_KEY")
    (tmp_path / "nothing").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="it is not text"):
        read_variable("A_KEY")


async def test_secret_of_a_domain_can_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("door")
    monkeypatch.setenv("SHOP_KEY_FILE", str(tmp_path / "key"))
    find = build_secret_finder(Settings(home=tmp_path))
    assert await find(SecretReference(SecretSource.ENV, "SHOP_KEY")) == "door"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("worker",), "RECRAWL_DATABASE_URL is not set"),
        (("deploy",), "RECRAWL_DATABASE_URL is not set"),
        (("server",), "PREFECT_API_AUTH_STRING is not set"),
        (("server", "--host", "nowhere"), "nowhere"),
        (("worker", "--limit", "0"), "--limit"),
    ],
)
def test_missing_setting_gives_a_one_line_error(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = run_here(*words, database_url=None, home=tmp_path)
    assert done.code in {1, 2}
    assert complaint in done.complaint


def test_worker_needs_a_prefect_server(recrawl: Recrawl) -> None:
    done = recrawl("worker")
    assert (done.code, "PREFECT_API_URL is not set" in done.complaint) == (1, True)


@pytest.fixture
def with_server(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> Recrawl:
    """Return the command with a Prefect server that does not exist: nothing listens on port 9."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    return recrawl


def test_deploy_reports_what_it_waited_for(with_server: Recrawl) -> None:
    done = with_server("deploy", "--wait", "0")
    assert done.code == 1
    assert "no Prefect server responds at http://127.0.0.1:9/api: gave up after 0 s" in done.err


def test_health_check_without_services_fails(with_server: Recrawl) -> None:
    done = with_server("health", "--json")
    told = {part["part"]: part["problem"] for part in done.json["parts"]}
    assert done.code == 1
    assert "no service runs in" in told["Service"]
    assert told["Database"] == ""
    assert "no Prefect server responds" in told["Prefect server"]


def test_errors_are_json_lines_with_the_json_log_format(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(RECRAWL), "worker"],
        env=environ(None, tmp_path) | {"RECRAWL_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stderr)
    assert (done.returncode, told["level"]) == (1, "error")
    assert "RECRAWL_DATABASE_URL" in told["event"]
