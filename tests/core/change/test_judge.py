"""Verdicts based on the digests of the last Snapshot."""

from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.change.verdict import judge_versions
from crawler.core.http.urls import Url
from crawler.core.page.snapshot import Version, parse_body


def image(pixels: bytes) -> Version:
    url = Url("http://site.test/a.png")
    return parse_body(b"\x89PNG\r\n\x1a\n" + pixels, url=url, content_type="image/png").version


def test_recrawl_in_full_does_not_change_a_page_without_text() -> None:
    """The digest is discarded when a user changes what is read. Regression: images were then reported as changed."""
    assert judge_versions(replace(image(b"one"), body_digest=b""), image(b"one")).change is Change.UNCHANGED


def test_bytes_decide_for_a_page_without_text() -> None:
    assert judge_versions(image(b"one"), image(b"two")).change is Change.CHANGED
