"""What a release is refused for, each on a project made up for it, and how a good one is tagged."""

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release import (
    PACKAGES,
    ReleaseError,
    archive_faults,
    changelog_faults,
    git_faults,
    named_version,
    tag,
    wheel_faults,
)

METADATA = "Metadata-Version: 2.4\nName: recrawl\nVersion: 1.2.3\nSummary: A crawler\n\n# recrawl\n"
INFO = "recrawl-1.2.3.dist-info/METADATA"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which all is committed and everything may be released as 1.2.3."""
    (tmp_path / "crawler").mkdir()
    (tmp_path / "crawler" / "__init__.py").write_text('__version__ = "1.2.3"  # here only\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-11-22\n\n### Added\n\n- All of it.\n")
    git(tmp_path, "init", "--quiet")
    for name, value in {"user.name": "nobody", "user.email": "nobody@example.com", "tag.gpgSign": "false"}.items():
        git(tmp_path, "config", name, value)
    commit(tmp_path)
    return tmp_path


def git(place: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def commit(place: Path) -> None:
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message", "State it")


def wheel_of(folder: Path, names: list[str], metadata: str = METADATA) -> Path:
    path = folder / "recrawl-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "")
        file.writestr(INFO, metadata)
    return path


def test_the_version_is_what_the_package_names(project: Path) -> None:
    assert named_version(project) == "1.2.3"


@pytest.mark.parametrize("line", ["", '__version__ = "1.2"', '__version__ = "1.2.3.dev1"', "__version__ = version()"])
def test_a_version_of_another_form_is_refused(project: Path, line: str) -> None:
    (project / "crawler" / "__init__.py").write_text(line)
    with pytest.raises(ReleaseError, match=r"no version such as 1\.2\.3"):
        named_version(project)


def test_a_good_state_has_no_faults_and_gets_an_annotated_tag(project: Path) -> None:
    assert changelog_faults(project, "1.2.3") == []
    assert git_faults(project, "1.2.3") == []
    tag(project, "1.2.3")
    assert git(project, "cat-file", "-t", "v1.2.3") == "tag"
    assert git(project, "rev-parse", "v1.2.3^{commit}") == git(project, "rev-parse", "HEAD")
    assert "tagged already" in git_faults(project, "1.2.3")[0]


@pytest.mark.parametrize(
    ("changelog", "fault"),
    [
        ("# Changelog\n", "the top section"),
        ("## [Unreleased]\n\n- More.\n\n## [1.2.3] - 2026-11-22\n\n- All.\n", "'[Unreleased]'"),
        ("## [1.2.30] - 2026-11-22\n\n- All.\n", "'[1.2.30]"),
        ("## [1.2.3]\n\n- All.\n", "YEAR-MONTH-DAY"),
        ("## [1.2.3] - 2026-11-22\n\n## [1.2.2] - 2026-10-01\n\n- All.\n", "has no entry for 1.2.3"),
    ],
)
def test_a_changelog_that_is_not_about_this_version_is_a_fault(project: Path, changelog: str, fault: str) -> None:
    (project / "CHANGELOG.md").write_text(changelog)
    (found,) = changelog_faults(project, "1.2.3")
    assert fault in found


def test_what_no_commit_has_is_a_fault(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("changed")
    (project / "new").write_text("new")
    assert git_faults(project, "1.2.3") == ["not committed: CHANGELOG.md, new"]


def test_outside_of_git_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"git status: .*not a git repository"):
        git_faults(tmp_path, "1.2.3")


def test_a_wheel_holds_the_product_with_its_types_and_nothing_else(tmp_path: Path) -> None:
    typed = [f"{package}/py.typed" for package in PACKAGES]
    assert wheel_faults(wheel_of(tmp_path, typed), "1.2.3") == []
    assert wheel_faults(wheel_of(tmp_path, [*typed[1:], "scripts/release.py"]), "1.2.3") == [
        "the wheel lacks crawler/py.typed",
        "the wheel contains scripts, which is not part of the product",
    ]


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        (METADATA.replace("1.2.3", "1.2.4"), "has version 1.2.4"),
        (METADATA.replace("Summary: A crawler", "Summery: A crawler"), "summery"),
        (METADATA.partition("\n\n")[0] + "\n\n", "no description"),
    ],
)
def test_metadata_that_an_index_would_refuse_is_a_fault(tmp_path: Path, metadata: str, fault: str) -> None:
    typed = [f"{package}/py.typed" for package in PACKAGES]
    (found,) = wheel_faults(wheel_of(tmp_path, typed, metadata), "1.2.3")
    assert fault in found


def test_a_source_archive_can_be_set_up_from(tmp_path: Path) -> None:
    path = tmp_path / "recrawl-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in ("PKG-INFO", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "requirements.lock"):
            info = tarfile.TarInfo(f"recrawl-1.2.3/{name}")
            info.size = len(METADATA)
            file.addfile(info, io.BytesIO(METADATA.encode()))
    assert archive_faults(path, "1.2.3") == ["the source archive lacks scripts/bootstrap.py"]
