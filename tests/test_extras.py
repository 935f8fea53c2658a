"""Without an extra, what needs it says in one line which extra that is and how to install it."""

import json
import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from crawler import extras
from crawler.engine.rendering.browsers import BrowserSource
from crawler.extras import EXTRAS, LOCKED_EXTRAS, PROJECT, build_install_command
from tests.commands import Done
from tests.databases import TestDatabases
from tests.patience import PATIENCE_S

WHEEL = "file:///srv/recrawl-0.1.0-py3-none-any.whl"
SCRIPT = f"""
import json, shlex, sys
from pathlib import Path
sys.modules.update(dict.fromkeys({sorted(set().union(*EXTRAS.values()))!r}))  # so that importing them fails
from tests.commands import in_this_process
url, home, *commands = sys.argv[1:]
with in_this_process(url, Path(home)) as recrawl:
    found = [recrawl(*shlex.split(words)) for words in commands]
print(json.dumps([(done.code, done.out, done.err) for done in found]))
"""
LACKING = {
    "mcp": "mcp",
    "export a.test --format parquet --to pages.parquet": "parquet",
}
WORKING = (
    *("--help", "report", "export a.test", "export a.test --format markdown --to notes", "export a.test --chunks"),
    "sync words.db",
)
RUN = "is not installed: run `"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("extras")


@pytest.fixture(scope="module")
def done(databases: TestDatabases, home: Path) -> dict[str, Done]:
    """Return how the commands end where no extra is installed; one process runs all of them."""
    wanted = ["domains add a.test --offline", *LACKING, *WORKING]
    with databases.lend() as url:
        process = subprocess.run(
            [sys.executable, "-c", SCRIPT, url, home, *wanted],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert process.returncode == 0, process.stderr
    return {words: Done(*each) for words, each in zip(wanted, json.loads(process.stdout), strict=True)}


@pytest.mark.parametrize("words", LACKING)
def test_a_command_names_the_extra_that_it_lacks(words: str, done: dict[str, Done], home: Path) -> None:
    extra, found = LACKING[words], done[words]

    assert (found.code, found.out) == (1, "")
    assert f"needs the extra {extra}, which {RUN}{build_install_command(extra)}`" in found.complaint
    assert not [*home.glob("pages*"), *home.glob("index*")]


@pytest.mark.parametrize("words", WORKING)
def test_a_command_that_needs_no_extra_works_without_any(words: str, done: dict[str, Done]) -> None:
    assert done[words].code == 0
    assert not {"Traceback", "extra"} & set(done[words].err.split())


def test_without_its_driver_there_is_no_browser_and_the_reason_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "playwright", None)
    source = BrowserSource(browser_name=None, user_agent="recrawl-test", timeout=timedelta(seconds=1))

    assert source.get_browser() is None
    assert source.missing_reason == (
        f"A browser needs the extra browser, which {RUN}{build_install_command('browser')}`"
    )


MCP = ["mcp<3,>=2.3"]
RECEIPT = 'tool = { requirements = [{ name = "recrawl", path = "/srv/x.whl" }%s] }'


@pytest.mark.parametrize(
    ("installer", "has_pip", "file", "text", "command"),
    [
        ("pip", True, "", "", ["/there/python", "-m", "pip", "install", *MCP]),
        ("uv", False, "", "", ["uv", "pip", "install", "--python", "/there/python", *MCP]),
        ("uv", False, "uv-receipt.toml", RECEIPT % "", ["uv", "tool", "install", f"recrawl[browser,mcp] @ {WHEEL}"]),
        (
            *("uv", False, "uv-receipt.toml", RECEIPT % ', { name = "my-plugin" }'),
            ["uv", "pip", "install", "--python", "/there/python", *MCP],
        ),
        ("pip", False, "pipx_metadata.json", "{}", ["pipx", "inject", "there", *MCP]),
        (
            *("pip", False, "", ""),
            shlex.split("docker build -f deployments/container/Containerfile --build-arg EXTRAS=mcp -t recrawl ."),
        ),
    ],
)
def test_the_command_is_that_of_the_tool_which_made_the_environment(
    *,
    installer: str,
    has_pip: bool,
    file: str,
    text: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = tmp_path / "there"
    prefix.mkdir()
    (prefix / (file or "pyvenv.cfg")).write_text(text)
    found = {"pip": has_pip, "playwright": True, "PIL": True}
    monkeypatch.setattr(extras, "find_spec", lambda name: sys if found.get(name) else None)
    monkeypatch.setattr(extras, "_read_metadata", lambda _: (installer, WHEEL, MCP))

    assert shlex.split(build_install_command("mcp", prefix=prefix, python="/there/python")) == command


def test_in_a_checkout_make_installs_what_has_a_lock_file() -> None:
    for extra in LOCKED_EXTRAS:
        command = build_install_command(extra, prefix=PROJECT / ".venv")
        assert command == f"make -C {PROJECT} setup-extras EXTRAS={extra}"
