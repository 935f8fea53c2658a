import pytest

from crawler.core.freshness.prior import NO_KIND, classify_site
from crawler.core.http.urls import Authority, get_public_suffix


@pytest.mark.parametrize(
    ("authority", "kind"),
    [
        ("www.nasa.gov", "gov"),
        ("www.gov.uk", "gov"),
        ("data.gouv.fr", "gov"),
        ("www.ox.ac.uk:8443", "edu"),
        ("mit.edu", "edu"),
        ("sydney.edu.au", "edu"),
        ("shop.example.com", "com"),
        ("example.co.jp", "com"),
        ("example.com.br", "com"),
        ("example.org", "org"),
        ("example.org.uk", "org"),
        ("example.de", "de"),
        ("example.io", "io"),
        ("someone.github.io", "github.io"),
        ("denver.co.us", "co.us"),
    ],
)
def test_kind_of_a_site_is_the_class_in_its_public_suffix(authority: str, kind: str) -> None:
    assert classify_site(Authority(authority)) == kind


@pytest.mark.parametrize(
    "authority", ["127.0.0.1:8001", "[2001:db8::1]", "localhost:8001", "intranet", "a.test", "wiki.internal"]
)
def test_addresses_and_names_without_a_listed_suffix_have_no_kind(authority: str) -> None:
    assert get_public_suffix(Authority(authority)) is None
    assert classify_site(Authority(authority)) == NO_KIND


def test_public_suffix_follows_the_list() -> None:
    assert get_public_suffix(Authority("docs.example.co.uk:8080")) == "co.uk"
    assert get_public_suffix(Authority("a.someone.github.io")) == "github.io"
