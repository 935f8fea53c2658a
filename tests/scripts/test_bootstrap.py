"""Set-up, run as a stranger runs it: a bare Python, an environment with nothing in it, a checkout of its own."""

import fcntl
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.watchdog import RUN

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-test.lock",
    "requirements-bench.lock",
    "requirements-docs.lock",
    "requirements-tools.lock",
)
READER = (
    "scripts/compile_reader.py",
    "crawler/core/page/compiled_scan.c",
    "crawler/core/page/main_content/compiled_scores.c",
)
NEEDED = ("pyproject.toml", *LOCKS, "README.md", "LICENSE", "scripts/bootstrap.py", "scripts/build_hook.py", *READER)
BARE_PYTHON = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    for name in NEEDED:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    return place


def environment(home: Path, **others: str) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "PATH": os.environ["PATH"], RUN: os.environ[RUN], **others}


def set_up(place: Path, *options: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [BARE_PYTHON, str(place / "scripts" / "bootstrap.py"), *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


PRETEND = (
    "import sys; sys.path.insert(0, 'scripts'); import bootstrap as b\n"
    "b.VENV.joinpath('bin').mkdir(parents=True, exist_ok=True); b.PYTHON.touch(0o755)\n"
    "b.write_stamp({part: b.fingerprint(part) for part in sys.argv[1:]})\n"
)
ASK = "import sys; sys.path.insert(0, 'scripts'); import bootstrap as b; print(b.is_ready(sys.argv[1:]))"

# Set-up as it is, but for what installs: that only tells which locks it was given, and may be told to be interrupted.
INSTALLERS_TELL = """
import sys; sys.path.insert(0, 'scripts')
import bootstrap as b
def install(locks):
    print(*(lock.name for lock in locks))
    if 'INTERRUPT' in b.os.environ: raise KeyboardInterrupt
b.install_locked, b.install_uv, b.install_project, b.find_browser = install, *[lambda: None] * 3
b.make_venv = lambda: (b.PYTHON.parent.mkdir(parents=True, exist_ok=True), b.PYTHON.touch(0o755))
sys.exit(b.main(sys.argv[1:]))
"""


def installed(place: Path, *options: str, **others: str) -> list[str]:
    """The lock files that a set-up with these options takes up; none where there is nothing to do."""
    done = subprocess.run(
        [BARE_PYTHON, "-c", INSTALLERS_TELL, *options],
        cwd=place,
        env={**os.environ, **others},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (130 if others else 0), done.stderr
    return done.stdout.split()


def is_ready(place: Path, *parts: str) -> bool:
    command = [BARE_PYTHON, "-c", ASK, *(parts or ["crawl"])]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout == "True\n"


def pretend_ready(place: Path, *parts: str) -> None:
    subprocess.run([BARE_PYTHON, "-c", PRETEND, *(parts or ["crawl"])], cwd=place, check=True)


def test_where_all_is_in_place_it_does_nothing_in_no_time(checkout: Path, tmp_path: Path) -> None:
    pretend_ready(checkout)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = set_up(checkout, env=environment(tmp_path / "home"))
    # Of the processor, which a busy machine gives late.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 1
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock", *READER])
def test_a_changed_file_means_work(checkout: Path, name: str) -> None:
    pretend_ready(checkout)
    assert is_ready(checkout)
    with (checkout / name).open("a") as file:
        file.write("# changed")
    assert not is_ready(checkout)


@pytest.mark.parametrize("part", ["test", "bench", "docs"])
def test_what_only_one_part_needs_is_work_for_that_part_only(checkout: Path, part: str) -> None:
    pretend_ready(checkout)
    assert not is_ready(checkout, "crawl", part)
    pretend_ready(checkout, "crawl", part)
    assert is_ready(checkout, "crawl", part)
    (checkout / f"requirements-{part}.lock").write_text("# changed")
    assert is_ready(checkout)
    assert not is_ready(checkout, "crawl", part)


def test_parts_may_be_asked_for_in_any_order_and_none_is_installed_twice(checkout: Path) -> None:
    assert installed(checkout) == ["requirements.lock"]
    assert installed(checkout, "--test") == ["requirements.lock", "requirements-test.lock"]
    assert installed(checkout) == []
    assert installed(checkout, "--test") == []
    assert installed(checkout, "--bench") == list(LOCKS[:3])
    assert installed(checkout, "--test", "--bench") == []


def test_all_that_was_installed_follows_a_change_together(checkout: Path) -> None:
    installed(checkout, "--test")
    with (checkout / "requirements.lock").open("a") as file:
        file.write("# changed")
    assert installed(checkout) == ["requirements.lock", "requirements-test.lock"]
    assert installed(checkout, "--test") == []


def test_an_interrupted_set_up_is_done_again_and_forgets_no_part(checkout: Path) -> None:
    installed(checkout, "--test")
    with (checkout / "requirements.lock").open("a") as file:
        file.write("# changed")
    assert installed(checkout, INTERRUPT="1") == ["requirements.lock", "requirements-test.lock"]
    assert not is_ready(checkout)
    assert installed(checkout) == ["requirements.lock", "requirements-test.lock"]
    assert is_ready(checkout, "crawl", "test")


def test_the_first_set_up_interrupted_leaves_no_part_installed(checkout: Path) -> None:
    assert installed(checkout, "--test", INTERRUPT="1")
    assert not is_ready(checkout)
    assert installed(checkout) == ["requirements.lock"]


def test_a_stamp_of_another_form_is_no_stamp(checkout: Path) -> None:
    pretend_ready(checkout)
    (checkout / ".venv" / "recrawl-stamp").write_text("0123abc\n\n", encoding="utf-8")
    assert not is_ready(checkout)
    assert installed(checkout) == ["requirements.lock"]


def test_a_moved_checkout_is_set_up_anew(checkout: Path) -> None:
    pretend_ready(checkout)
    assert not is_ready(checkout.rename(checkout.with_name("moved")))


@pytest.mark.soak
def test_without_a_network_it_says_so_in_one_line(checkout: Path, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"  # the discard port: nobody listens
    cut_off = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"], nowhere)
    env = environment(tmp_path / "home", PIP_CONFIG_FILE=os.devnull, PIP_RETRIES="0", **cut_off)
    done = set_up(checkout, env=env)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("setup: ")
    assert "check the network, then run it again" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not is_ready(checkout)


def test_a_python_that_cannot_make_environments_gets_the_remedy(checkout: Path, tmp_path: Path) -> None:
    crippled = tmp_path / "crippled"
    crippled.mkdir()
    (crippled / "ensurepip.py").write_text("raise ImportError('No module named ensurepip')")
    done = set_up(checkout, env=environment(tmp_path / "home", PYTHONPATH=str(crippled)))
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_old_python_is_told_which_one_is_needed() -> None:
    ask = (
        "import sys; sys.version_info = (3, 9, 2); sys.path.insert(0, 'scripts'); import bootstrap\n"
        "sys.exit(bootstrap.main([]))"
    )
    done = subprocess.run([BARE_PYTHON, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.11 or newer is required" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_somebody_elses_checkout_is_refused_in_one_line(checkout: Path, tmp_path: Path) -> None:
    for folder in (checkout, *checkout.parents[:2]):
        folder.chmod(0o755)
    ask = (
        "import os, sys; sys.path.insert(0, 'scripts'); import bootstrap\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(bootstrap.main([]))"
    )
    done = subprocess.run([BARE_PYTHON, "-c", ask], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "use your own checkout" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_one_waits_for_the_first(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".cache").mkdir()
    with (checkout / ".cache" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [BARE_PYTHON, str(checkout / "scripts" / "bootstrap.py")],
            env=environment(tmp_path / "home"),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr is not None
        assert "waiting for it" in second.stderr.readline()
        assert not (checkout / ".venv").exists()
        second.terminate()
        second.wait()


@pytest.mark.soak
def test_from_nothing_and_from_half_a_set_up(checkout: Path, tmp_path: Path) -> None:
    env = environment(tmp_path / "home")
    for room in ("crawler", "flows", "models", "migrations", "deployments"):
        shutil.copytree(ROOT / room, checkout / room, dirs_exist_ok=True)
    for broken in (None, ".cache/tools/bin/uv", ".cache/tools/bin/python", ".venv/bin/python"):
        if broken is not None:
            (checkout / ".venv" / "recrawl-stamp").unlink()
            (checkout / broken).unlink()
        done = set_up(checkout, env=env)
        assert done.returncode == 0, done.stderr
        said = subprocess.run(
            [checkout / ".venv" / "bin" / "recrawl", "--help"], env=env, check=True, capture_output=True
        )
        assert b"recrawl" in said.stdout
