"""What a plugin may return, and how invalid results are reported."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from crawler.core.http.urls import Url
from crawler.plugins import (
    NO_PLUGINS,
    PageScore,
    ReadContent,
    ReaderOfType,
    RevisitRule,
    UrlFilter,
    list_plugins,
    load_plugins,
)
from crawler.plugins.points import (
    POINTS,
    NotUsable,
    PluginGroup,
    check_accepts,
    compute_score,
    read_document,
    read_media_types,
    require_usable,
)

URL = Url("https://site.example/tables/a.csv")


@dataclass
class Answers:
    """A plugin of every kind that returns the value that it was created with."""

    answer: Any
    media_types: Any = ("text/csv",)

    def score(self, url: str) -> Any:
        return self.answer

    def accepts(self, url: str) -> Any:
        return self.answer

    def read(self, body: bytes, *, url: str, content_type: str) -> Any:
        return self.answer

    def choose_interval(self, visit: Any) -> Any:
        return self.answer


def test_such_an_object_implements_each_protocol() -> None:
    score: PageScore = Answers(2)
    url_filter: UrlFilter = Answers(False)
    reader: ReaderOfType = Answers(ReadContent("words"))
    revisit: RevisitRule = Answers(timedelta(days=7))

    assert compute_score(score, URL) == 2.0
    assert check_accepts(url_filter, URL) is False
    assert read_document(reader, b"", url=URL, content_type="text/csv").text == "words"
    require_usable(PluginGroup.REVISIT, revisit)


@pytest.mark.parametrize("score", [-1, 1000.1, float("nan"), float("inf"), True, "2", None, 2j])
def test_a_score_is_a_number_from_0_to_1000(score: object) -> None:
    with pytest.raises(NotUsable, match="not a number from 0 to 1000"):
        compute_score(Answers(score), URL)


@pytest.mark.parametrize("accepted", [0, 1, None, "yes"])
def test_a_filter_returns_true_or_false(accepted: object) -> None:
    with pytest.raises(NotUsable, match="not True or False"):
        check_accepts(Answers(accepted), URL)


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(days=-1), 7, 7.0, None, "7d"])
def test_a_revisit_policy_returns_a_timedelta_above_0(wait: object) -> None:
    require_usable(PluginGroup.REVISIT, Answers(timedelta(days=7)))

    with pytest.raises(NotUsable, match="not a timedelta above 0"):
        require_usable(PluginGroup.REVISIT, Answers(wait))


@pytest.mark.parametrize(
    "read",
    [None, "text", {"text": "a"}, ReadContent(text=b"a"), ReadContent("a", links="/b"), ReadContent("a", links=[1])],  # type: ignore[arg-type,list-item]
)
def test_a_reader_returns_text_title_and_links(read: object) -> None:
    with pytest.raises(NotUsable, match=r"^returns "):
        read_document(Answers(read), b"", url=URL, content_type="text/csv")


def test_what_a_reader_returns_is_text_and_links_like_those_of_any_page() -> None:
    content = ReadContent("a\0  b\n\n\ud800c\n", title=" t\n", links=["b.csv", "/c#d", "mailto:x@y.example", "b.csv"])

    document = read_document(Answers(content), b"", url=URL, content_type="text/csv")

    assert document.text == "a b\n?c"
    assert document.title == "t"
    assert document.links == ("https://site.example/tables/b.csv", "https://site.example/c")


@pytest.mark.parametrize("types", ["text/csv", (), None, ("csv",), (1,), ("text/csv", "text/HTML; charset=utf-8")])
def test_a_reader_names_its_media_types_and_web_pages_are_reserved(types: object) -> None:
    with pytest.raises(NotUsable):
        read_media_types(Answers(None, media_types=types))


def test_a_reader_may_reject_an_empty_body_but_not_its_sample() -> None:
    class Choosy(Answers):
        def read(self, body: bytes, *, url: str, content_type: str) -> Any:
            raise ValueError("nothing in it")

    choosy = Choosy(None)
    require_usable(PluginGroup.READER, choosy)

    choosy.sample = b"a,b"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="nothing in it"):
        require_usable(PluginGroup.READER, choosy)


def test_every_point_has_a_way_to_try_its_plugins() -> None:
    assert set(POINTS) == set(PluginGroup)
    for group in PluginGroup:
        with pytest.raises(NotUsable, match="has no method"):
            require_usable(group, object())


def test_without_names_no_plugin_is_loaded() -> None:
    assert load_plugins(()) == NO_PLUGINS
    assert NO_PLUGINS.find_reader("text/csv") is None
    assert [each for each in list_plugins(()) if each.is_used] == []
