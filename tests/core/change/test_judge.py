"""Judging a page by the digests of its last Snapshot."""

from dataclasses import replace

from crawler.core.change.change import Change, judge_versions
from crawler.core.http.urls import Url
from crawler.core.page.snapshot import Version, parse_body


def image(pixels: bytes) -> Version:
    url = Url("http://site.test/a.png")
    return parse_body(b"\x89PNG\r\n\x1a\n" + pixels, url=url, content_type="image/png", robots_tag=None).version


def test_a_page_without_text_that_is_read_anew_has_not_changed_by_that() -> None:
    """Its bytes are forgotten when its user changes what is read: an image was told as changed each time."""
    assert judge_versions(replace(image(b"one"), body_digest=b""), image(b"one")).change is Change.UNCHANGED


def test_of_a_page_without_text_the_bytes_decide() -> None:
    assert judge_versions(image(b"one"), image(b"two")).change is Change.CHANGED
