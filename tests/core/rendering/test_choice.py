"""Which pages are rendered: by word, by scripts, and by what renders of such pages have brought."""

import pytest

from crawler.core.http import Url
from crawler.core.page import Parsed, parse
from crawler.core.rendering import NO_RENDERS, RenderChoice, RenderMemory, choice_of, gain_of, memory_after
from crawler.core.rendering.choice import RETEST_AFTER, SAMPLES, has_scripts
from crawler.core.rendering.memory import MOST_TEMPLATES, OTHERS

SHELL = b"<title>App</title><div id=root></div><script src=/app.js></script>"
MENU = "<a href=/help>help</a><p>We use cookies to make this site better for you and for all of us."


def read(body: str | bytes, path: str = "/a/one") -> Parsed:
    body = body.encode() if isinstance(body, str) else body
    return parse(body, url=Url(f"http://site.test{path}"), content_type="text/html; charset=utf-8", robots_tag=None)


def article(words: str) -> str:
    return f"<main><p>This is the story of {words}, which nobody has told before, in full."


def look(memory: RenderMemory, before: str | bytes, after: str, path: str, template: str = "/a/*") -> RenderMemory:
    url = Url(f"http://site.test{path}")
    gain = gain_of(read(before, path), read(after, path), usual=memory.usual_beside(url))
    return memory_after(memory, template, url, RenderChoice.SAMPLE, gain)


def choose(body: bytes, memory: RenderMemory, *, template: str = "/a/*") -> RenderChoice:
    return choice_of(body, read(body), template=template, mode="auto", memory=memory)


@pytest.mark.parametrize(
    ("body", "has"),
    [
        (b"<script>go()</script>", True),
        (b"<SCRIPT SRC=x.js></SCRIPT>", True),
        (b"<script type=module src=x.js></script>", True),
        (b"<script async defer src='/type=application/json.js'></script>", True),
        (b"<body onload=go()>", True),
        (b"<p>no script, <b>scripted</b> by nobody", False),
        (b"<script type='application/ld+json'>{}</script>", False),
        (b"<script id=x type=application/json>{}</script>", False),
        (b"<script type='text/template'><p></script>", False),
        (b"<noscript>no</noscript>", False),
        (b"<scripture>", False),
    ],
)
def test_only_what_a_browser_would_run_is_a_script(body: bytes, has: bool) -> None:
    assert has_scripts(body) is has


def test_the_first_pages_of_a_template_are_tried_and_what_brought_something_goes_on() -> None:
    memory = NO_RENDERS
    for n, name in enumerate(("amber", "birch", "cedar", "dune")):
        assert choose(SHELL, memory) is (RenderChoice.SAMPLE if n < SAMPLES else RenderChoice.NEEDED)
        memory = look(memory, SHELL, article(name), f"/a/{name}")

    assert choose(SHELL, memory) is RenderChoice.NEEDED
    assert choose(SHELL, memory, template="/other") is RenderChoice.SAMPLE


def test_what_scripts_add_to_every_page_is_a_reason_for_none() -> None:
    """A banner and a menu are all that these scripts write: after a few pages the browser is left out."""
    memory = NO_RENDERS
    renders = 0
    for name in ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "island", "jungle"):
        plain = f"{article(name)}<script>banner()</script>"
        if not choose(plain.encode(), memory).is_yes:
            break
        renders += 1
        memory = look(memory, plain, plain + MENU, f"/a/{name}")

    assert SAMPLES <= renders <= 6
    assert choose(f"{article('kelp')}<script>banner()</script>".encode(), memory) is RenderChoice.NO_GAIN


def test_a_page_keeps_its_own_additions_when_it_is_rendered_again() -> None:
    memory = look(NO_RENDERS, SHELL, article("amber"), "/a/amber")
    memory = look(memory, SHELL, article("birch"), "/a/birch")
    url = Url("http://site.test/a/amber")

    again = gain_of(read(SHELL), read(article("amber")), usual=memory.usual_beside(url))

    assert again.is_worth_it


def test_a_template_that_needs_none_is_tried_again_ever_more_rarely() -> None:
    page = f"{article('amber ' * 50)}<script>nothing()</script>"
    memory = NO_RENDERS
    for name in ("amber", "birch", "cedar"):
        memory = look(memory, page, page, f"/a/{name}")
    gaps = []
    for _ in range(3):
        passed = 0
        while not choose(page.encode(), memory).is_yes:
            memory = memory_after(memory, "/a/*", Url("http://site.test/a/x"), RenderChoice.NO_GAIN, None)
            passed += 1
        gaps.append(passed)
        memory = look(memory, page, page, "/a/x")

    assert gaps == [RETEST_AFTER * 4, RETEST_AFTER * 5, RETEST_AFTER * 6]


def test_a_redesign_is_noticed_by_the_shell_that_it_leaves() -> None:
    page = f"{article('amber ' * 50)}<script>nothing()</script>"
    memory = NO_RENDERS
    for name in ("amber", "birch", "cedar"):
        memory = look(memory, page, page, f"/a/{name}")

    for _ in range(RETEST_AFTER):
        if choose(SHELL, memory) is RenderChoice.SHELL:
            break
        memory = memory_after(memory, "/a/*", Url("http://site.test/a/x"), RenderChoice.NO_GAIN, None)
    assert choose(SHELL, memory) is RenderChoice.SHELL
    assert choose(page.encode(), memory) is RenderChoice.NO_GAIN


@pytest.mark.parametrize(("mode", "choice"), [("always", RenderChoice.ALWAYS), ("never", RenderChoice.NEVER)])
def test_the_users_word_is_the_last(mode: str, choice: RenderChoice) -> None:
    found = choice_of(SHELL, None, template="/", mode=mode, memory=NO_RENDERS)  # type: ignore[arg-type]
    assert found is choice


@pytest.mark.parametrize(
    ("before", "after", "is_worth_it"),
    [
        (SHELL, "<p>Sold out", True),  # next to nothing was there
        (article("amber") * 9, article("amber") * 9 + "<p>3 comments", False),
        (article("amber"), article("amber") + "<a href=/new>new</a>", True),
        (article("amber"), article("amber"), False),
        (SHELL, SHELL.decode(), False),
    ],
)
def test_a_few_words_are_worth_it_where_there_were_none(before: str | bytes, after: str, is_worth_it: bool) -> None:
    assert gain_of(read(before), read(after), usual=frozenset()).is_worth_it is is_worth_it


def test_a_site_of_endless_templates_has_a_bounded_memory() -> None:
    memory = NO_RENDERS
    for n in range(MOST_TEMPLATES + 50):
        memory = look(memory, SHELL, article(f"tale {n}"), f"/t{n}/x", template=f"/t{n}/*")

    assert len(memory.templates) == MOST_TEMPLATES + 1
    assert memory.of("/never/seen").tests == memory.templates[OTHERS].tests == 50
    assert len(memory.additions) <= 512
