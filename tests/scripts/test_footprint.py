"""What an installation for crawling holds, and that it does not grow unseen."""

from scripts.footprint import installed, main

MOST_PACKAGES = 150
MOST_MB = 580.0  # 501 without compiled modules; a third of it is the driver of the browser
MOST_DEFAULT_MB = 350.0  # of the wheel without extras; 311 without compiled modules
EXTRAS = {"playwright"}  # that a checkout has


def test_the_installation_stays_as_large_as_the_readme_says() -> None:
    found = installed()
    assert 100 < len(found) <= MOST_PACKAGES
    assert {"prefect", "psycopg", "httptools"} <= {each.name for each in found}
    assert sum(each.bytes for each in found) / 1e6 < MOST_MB
    assert sum(each.bytes for each in found if each.name not in EXTRAS) / 1e6 < MOST_DEFAULT_MB
    assert [each.bytes for each in found] == sorted((each.bytes for each in found), reverse=True)


def test_it_is_printed(capsys: object) -> None:
    assert main() == 0
