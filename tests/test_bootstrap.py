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

ROOT = Path(__file__).parent.parent
NEEDED = ("pyproject.toml", "requirements.lock", "requirements-bench.lock", "README.md", "LICENSE")
BARE_PYTHON = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "crawler").mkdir(parents=True)
    for name in NEEDED:
        shutil.copy(ROOT / name, place / name)
    shutil.copy(ROOT / "crawler" / "bootstrap.py", place / "crawler" / "bootstrap.py")
    return place


def environment(home: Path, **others: str) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "PATH": os.environ["PATH"], RUN: os.environ[RUN], **others}


def set_up(place: Path, *options: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [BARE_PYTHON, str(place / "crawler" / "bootstrap.py"), *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


PRETEND = (
    "import sys; sys.path.insert(0, 'crawler'); import bootstrap as b\n"
    "b.VENV.joinpath('bin').mkdir(parents=True, exist_ok=True); b.PYTHON.touch(0o755)\n"
    "b.STAMP.write_text(b.fingerprint(b.LOCK) + '\\n')\n"
)
ASK = "import sys; sys.path.insert(0, 'crawler'); import bootstrap as b; print(b.is_ready(bench=len(sys.argv) > 1))"


def is_ready(place: Path, *options: str) -> bool:
    done = subprocess.run([BARE_PYTHON, "-c", ASK, *options], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout == "True\n"


def pretend_ready(place: Path) -> None:
    subprocess.run([BARE_PYTHON, "-c", PRETEND], cwd=place, check=True)


def test_where_all_is_in_place_it_does_nothing_in_no_time(checkout: Path, tmp_path: Path) -> None:
    pretend_ready(checkout)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = set_up(checkout, env=environment(tmp_path / "home"))
    # Of the processor, which a busy machine gives late.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 1
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_changed_file_means_work(checkout: Path, name: str) -> None:
    pretend_ready(checkout)
    assert is_ready(checkout)
    with (checkout / name).open("a") as file:
        file.write("# changed")
    assert not is_ready(checkout)


def test_what_only_the_benchmarks_need_is_work_for_them_only(checkout: Path) -> None:
    pretend_ready(checkout)
    assert not is_ready(checkout, "--bench")
    (checkout / "requirements-bench.lock").write_text("# changed")
    assert is_ready(checkout)


def test_a_moved_checkout_is_set_up_anew(checkout: Path) -> None:
    pretend_ready(checkout)
    assert not is_ready(checkout.rename(checkout.with_name("moved")))


def test_without_a_network_it_says_so_in_one_line(checkout: Path, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"  # the discard port: nobody listens
    cut_off = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"], nowhere)
    env = environment(tmp_path / "home", PIP_CONFIG_FILE=os.devnull, PIP_RETRIES="0", **cut_off)
    done = set_up(checkout, env=env)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("setup: ")
    assert "check the network, then run it again" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv" / "recrawl-stamp").exists()


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
        "import sys; sys.version_info = (3, 9, 2); sys.path.insert(0, 'crawler'); import bootstrap\n"
        "sys.exit(bootstrap.main([]))"
    )
    done = subprocess.run([BARE_PYTHON, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_somebody_elses_checkout_is_refused_in_one_line(checkout: Path, tmp_path: Path) -> None:
    for folder in (checkout, *checkout.parents[:2]):
        folder.chmod(0o755)
    ask = (
        "import os, sys; sys.path.insert(0, 'crawler'); import bootstrap\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(bootstrap.main([]))"
    )
    done = subprocess.run([BARE_PYTHON, "-c", ask], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "use a checkout of your own" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_one_waits_for_the_first(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".cache").mkdir()
    with (checkout / ".cache" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [BARE_PYTHON, str(checkout / "crawler" / "bootstrap.py")],
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
    for broken in (None, ".venv/bin/uv", ".venv/bin/python", ".venv/recrawl-stamp"):
        if broken is not None:
            (checkout / ".venv" / "recrawl-stamp").unlink()
            (checkout / broken).unlink(missing_ok=True)
        done = set_up(checkout, env=env)
        assert done.returncode == 0, done.stderr
        said = subprocess.run(
            [checkout / ".venv" / "bin" / "recrawl", "--help"], env=env, check=True, capture_output=True
        )
        assert b"recrawl" in said.stdout
