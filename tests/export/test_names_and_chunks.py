"""File names, chunks and CSV cells for arbitrary URLs and texts."""

from pathlib import Path, PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url, normalize_url
from crawler.export.chunks import MAX_CHARS, chunk_markdown
from crawler.export.markdown import build_path

URL = Url("http://site.test/")


@given(st.sets(st.text(max_size=40), max_size=12))
def test_each_url_has_a_unique_file_inside_the_folder(paths: set[str]) -> None:
    urls = {url for url in (normalize_url(f"http://site.test/{path}") for path in paths) if url is not None}
    files = [build_path(url) for url in urls]

    assert len(set(files)) == len(files)
    for file in files:
        assert not file.is_absolute()
        assert not {".", ".."} & set(file.parts)
        assert all(len(part.encode()) <= 200 for part in file.parts)
        assert not any(part.startswith(".") for part in file.parts)


def test_no_file_has_the_path_of_a_folder() -> None:
    urls = ["http://site.test/a", "http://site.test/a/", "http://site.test/a/b", "http://site.test/a/index"]
    urls += ["http://site.test/a.md/b", "http://site.test/a.md", "http://site.test/" + "long" * 200]
    files = [build_path(Url(url)) for url in urls]
    folders = {parent for file in files for parent in file.parents}

    assert len(set(files)) == len(files)
    assert not folders & set(files)
    assert files[0] == Path("a.md")


def test_unsafe_names_are_replaced() -> None:
    for path in ("/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc", "/%00", "/a%5C..%5Cb", "/.ssh/config", "/C:/x"):
        file = build_path(Url(f"http://site.test{path}"))
        assert ".." not in file.parts
        assert "\\" not in str(file)
        assert not any(part.startswith(".") for part in file.parts)
        assert PurePosixPath(file).suffix == ".md"


def test_long_texts_are_split_between_paragraphs_without_loss() -> None:
    paragraphs = [f"word{n} " * 90 for n in range(40)]
    chunks = list(chunk_markdown("# All\n\n" + "\n\n".join(paragraphs), url=URL))

    assert len(chunks) > 5
    assert all(len(chunk.text) <= MAX_CHARS for chunk in chunks)
    assert "\n\n".join(chunk.text for chunk in chunks).split() == " ".join(paragraphs).split()
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert {chunk.headings for chunk in chunks} == {("All",)}


@given(st.text(alphabet="ab #\n`~-", max_size=300), st.integers(5, 50))
def test_chunks_of_any_text_are_small_and_complete(markdown: str, most: int) -> None:
    chunks = list(chunk_markdown(markdown, url=URL, max_chars=most))

    assert all(0 < len(chunk.text) <= most for chunk in chunks)
    assert sum(chunk.text.count("a") for chunk in chunks) <= markdown.count("a")
    assert len({chunk.id for chunk in chunks}) == len(chunks)


def test_heading_in_a_fence_is_code_and_deeper_headings_end_with_their_parent() -> None:
    text = "intro\n\n# One\n\na\n\n### Deep\n\nb\n\n```\n# not one\n```\n\n## Two\n\nc\n\n# Last\n\nd\n"

    found = [(chunk.headings, chunk.text) for chunk in chunk_markdown(text, url=URL)]

    assert found == [
        ((), "intro"),
        (("One",), "a"),
        (("One", "Deep"), "b\n\n```\n# not one\n```"),
        (("One", "Two"), "c"),
        (("Last",), "d"),
    ]


def test_heading_in_a_list_does_not_start_a_section() -> None:
    text = "# One\n\n- ## Card\n\n  a\n\n- ```sh\n  # not one\n  ```\n\n# Two\n\nb\n"

    found = [(chunk.headings, chunk.text) for chunk in chunk_markdown(text, url=URL)]

    assert found == [(("One",), "- ## Card\n\n  a\n\n- ```sh\n  # not one\n  ```"), (("Two",), "b")]
