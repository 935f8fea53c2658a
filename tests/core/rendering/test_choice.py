"""The choice of pages to render, by user settings, HTML and earlier renders."""

import pytest

from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.page.script_signs import has_scripts
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.rendering.memory import (
    FREE_PROBES,
    MAX_ADDITIONS,
    MAX_TEMPLATES,
    MAX_UNRENDERED,
    NO_RENDERS,
    OTHER_TEMPLATES,
    PROBE_AGAIN_AFTER,
    ReadPage,
    RenderMemory,
    choose_rendering,
    record_render_failure,
    select_pages_to_render,
    update_render_memory,
)
from crawler.core.rendering.outcome import RenderChoice, RenderEvidence, compute_gain, find_render_evidence

SHELL = b"<title>App</title><div id=root></div><script src=/app.js></script>"
MENU = "<a href=/help>help</a><p>We use cookies to make this site better for you and for all of us."
NAMES = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "island", "jungle")


def read(body: str | bytes, path: str = "/a/one") -> Parsed:
    body = body.encode() if isinstance(body, str) else body
    return parse_body(body, url=Url(f"http://site.test{path}"), content_type="text/html; charset=utf-8")


def article(words: str) -> str:
    return f"<main><p>This is the story of {words}, which nobody has told before, in full."


def partial(name: str) -> str:
    """Return a page with its own text and an empty element that a script fills."""
    return f"{article(f'{name} ' * 50)}<ul id=items></ul></main><script src=/list.js></script>"


def key(path: str) -> PageKey:
    return compute_page_key(Url(f"http://site.test{path}"))


def choose(body: str | bytes, memory: RenderMemory, *, template: str = "/a/*", is_stored: bool = True) -> RenderChoice:
    body = body.encode() if isinstance(body, str) else body
    return choose_rendering(body, read(body), template=template, mode="auto", memory=memory, is_stored=is_stored)


def passed(
    memory: RenderMemory, body: str | bytes, path: str, choice: RenderChoice, template: str = "/a/*"
) -> RenderMemory:
    """Return the memory after a page that was not rendered."""
    url, evidence = Url(f"http://site.test{path}"), find_render_evidence(read(body))
    return update_render_memory(memory, ReadPage(url, key(path), template, evidence, choice), None)


def rendered(
    memory: RenderMemory,
    before: str | bytes,
    after: str,
    path: str,
    *,
    template: str = "/a/*",
    choice: RenderChoice = RenderChoice.PROBE,
) -> RenderMemory:
    """Return the memory after a page that was rendered."""
    url, plain = Url(f"http://site.test{path}"), read(before, path)
    gain = compute_gain(plain, read(after, path), common_additions=memory.list_common_additions(url))
    evidence = find_render_evidence(plain)
    return update_render_memory(memory, ReadPage(url, key(path), template, evidence, choice), gain)


def failed(memory: RenderMemory, choice: RenderChoice, template: str = "/a/*") -> RenderMemory:
    """Return the memory after an incomplete render of a shell."""
    page = ReadPage(Url("http://site.test/a/amber"), key("/a/amber"), template, RenderEvidence.SHELL, choice)
    return record_render_failure(memory, page)


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
def test_only_code_that_a_browser_runs_is_a_script(body: bytes, has: bool) -> None:
    assert has_scripts(body) is has


def test_page_without_signs_is_not_rendered() -> None:
    page = f"{article('amber ' * 50)}</main><script src=/nice.js></script>"
    assert choose(page, NO_RENDERS) is RenderChoice.NO_SIGNS
    assert choose(article("amber"), NO_RENDERS) is RenderChoice.NO_SCRIPTS


def test_shell_is_stored_before_one_of_its_template_is_probed() -> None:
    assert choose(SHELL, NO_RENDERS, is_stored=False) is RenderChoice.AWAITED
    memory = NO_RENDERS
    for name in NAMES[:4]:
        memory = passed(memory, SHELL, f"/a/{name}", RenderChoice.AWAITED)

    pages, memory = select_pages_to_render(memory, is_exhausted=False)
    assert len(pages) == 1
    assert select_pages_to_render(memory, is_exhausted=True) == ((), memory)  # the outcome of the probe is pending

    memory = rendered(memory, SHELL, article("dune"), "/a/dune")
    others, memory = select_pages_to_render(memory, is_exhausted=False)
    assert {*others, *pages} == {key(f"/a/{name}") for name in NAMES[:4]}
    assert choose(SHELL, memory, is_stored=False) is RenderChoice.NEEDED


def test_first_shell_of_a_template_is_probed_at_once_if_shells_needed_rendering() -> None:
    memory = rendered(NO_RENDERS, SHELL, article("amber"), "/a/amber")
    assert choose(SHELL, memory, template="/b/", is_stored=False) is RenderChoice.PROBE
    assert choose(partial("birch"), memory, template="/b/", is_stored=False) is RenderChoice.AWAITED


def test_shells_without_gain_are_probed_twice() -> None:
    memory, probes = NO_RENDERS, 0
    for n in range(PROBE_AGAIN_AFTER):
        if choose(SHELL, memory) is RenderChoice.PROBE:
            probes += 1
            memory = rendered(memory, SHELL, SHELL.decode(), f"/a/{n}")
        else:
            memory = passed(memory, SHELL, f"/a/{n}", RenderChoice.NO_GAIN)
    assert probes == 2
    assert choose(SHELL, memory) is RenderChoice.NO_GAIN


def test_template_without_gain_is_probed_less_and_less_often() -> None:
    memory = NO_RENDERS
    for name in NAMES[:2]:
        memory = rendered(memory, SHELL, SHELL.decode(), f"/a/{name}")
    gaps = []
    for _ in range(3):
        count = 0
        while choose(SHELL, memory) is not RenderChoice.PROBE:
            memory = passed(memory, SHELL, "/a/x", RenderChoice.NO_GAIN)
            count += 1
        gaps.append(count)
        memory = rendered(memory, SHELL, SHELL.decode(), "/a/x")
    assert gaps == [PROBE_AGAIN_AFTER * n for n in (3, 4, 5)]


def test_partial_page_is_probed_when_no_other_page_is_left() -> None:
    memory = passed(NO_RENDERS, partial("amber"), "/a/amber", RenderChoice.AWAITED)
    assert select_pages_to_render(memory, is_exhausted=False) == ((), memory)
    pages, _ = select_pages_to_render(memory, is_exhausted=True)
    assert pages == (key("/a/amber"),)


def test_search_page_among_articles_is_not_probed() -> None:
    """Fewer than a fifth of the template's pages show a missing part, so the template does not need a browser."""
    memory = passed(NO_RENDERS, partial("search"), "/a/search", RenderChoice.AWAITED)
    for name in NAMES[:5]:
        page = f"{article(f'{name} ' * 50)}</main><script src=/nice.js></script>"
        memory = passed(memory, page, f"/a/{name}", RenderChoice.NO_SIGNS)
    assert select_pages_to_render(memory, is_exhausted=True) == ((), memory)


def test_additions_to_every_page_are_no_reason_to_render() -> None:
    """These scripts write only a banner and a menu. The second probe shows that the first had no real gain."""
    memory, renders = NO_RENDERS, 0
    for name in NAMES:
        if not choose(partial(name), memory).is_rendered:
            memory = passed(memory, partial(name), f"/a/{name}", RenderChoice.NO_GAIN)
            continue
        renders += 1
        memory = rendered(memory, partial(name), partial(name) + MENU, f"/a/{name}")
    assert renders == 2

    # The page stored with its banner is rendered each time, which proves nothing about the others.
    for _ in range(5):
        memory = rendered(memory, partial("amber"), partial("amber") + "<p>" + "a word " * 9, "/a/amber",
                          choice=RenderChoice.NEEDED)  # fmt: skip
    assert choose(partial("kelp"), memory) is RenderChoice.NO_GAIN


def test_two_pages_with_gain_make_their_template_rendered() -> None:
    memory = NO_RENDERS
    for name in NAMES[:2]:
        assert choose(partial(name), memory) is RenderChoice.PROBE
        memory = rendered(memory, partial(name), partial(name) + article(name), f"/a/{name}")
    assert choose(partial("cedar"), memory, is_stored=False) is RenderChoice.NEEDED


def test_fruitless_renders_are_bounded_across_templates() -> None:
    memory, probes = NO_RENDERS, 0
    for n in range(60):
        if choose(partial(f"tale {n}"), memory, template=f"/t{n}/") is RenderChoice.PROBE:
            probes += 1
            memory = rendered(memory, partial("x"), partial("x"), f"/t{n}/", template=f"/t{n}/")
    assert probes == FREE_PROBES[RenderEvidence.PARTIAL] + 1  # one for the first hundred pages


def test_incomplete_renders_are_repeated_and_then_count() -> None:
    memory = passed(NO_RENDERS, SHELL, "/a/amber", RenderChoice.AWAITED)
    attempts = 0
    while (found := select_pages_to_render(memory, is_exhausted=True))[0]:
        attempts += 1
        memory = failed(found[1], RenderChoice.PROBE)
    assert attempts == 3


@pytest.mark.parametrize("choice", [RenderChoice.ALWAYS, RenderChoice.NEEDED])
def test_other_renders_use_up_no_probes(choice: RenderChoice) -> None:
    memory = NO_RENDERS
    for n in range(30):
        memory = rendered(memory, SHELL, SHELL.decode(), f"/a/{n}", choice=choice)
        memory = failed(memory, RenderChoice.NEEDED)
    assert choose(SHELL, memory, template="/app/*") is RenderChoice.PROBE
    for n in range(30):
        memory = failed(memory, RenderChoice.PROBE, template=f"/t{n}/")
        memory = failed(memory, RenderChoice.PROBE, template=f"/t{n}/")
        memory = failed(memory, RenderChoice.PROBE, template=f"/t{n}/")
    assert choose(SHELL, memory, template="/app/*") is RenderChoice.NO_GAIN


def test_page_is_awaited_only_while_a_probe_is_possible() -> None:
    memory = NO_RENDERS
    for n in range(FREE_PROBES[RenderEvidence.SHELL] + 1):
        assert choose(SHELL, memory, template="/app/*", is_stored=False) is RenderChoice.AWAITED
        memory = rendered(memory, SHELL, SHELL.decode(), f"/t{n}/", template=f"/t{n}/")
    assert choose(SHELL, memory, template="/app/*", is_stored=False) is RenderChoice.NO_GAIN


@pytest.mark.parametrize("is_stored", [True, False])
def test_running_probes_count_as_fruitless(is_stored: bool) -> None:
    memory = rendered(NO_RENDERS, SHELL, article("amber"), "/a/amber")  # the first visit of a shell may be a probe
    most = FREE_PROBES[RenderEvidence.SHELL] + memory.gains

    def choice(running: int) -> RenderChoice:
        return choose_rendering(SHELL, read(SHELL), template="/b/", mode="auto", memory=memory, is_stored=is_stored,
                         running=running)  # fmt: skip

    assert choice(most) is RenderChoice.PROBE  # the page itself adds a hundredth of a probe
    assert choice(most + 1) is RenderChoice.AWAITED


def test_page_rendered_again_keeps_its_own_additions() -> None:
    memory = rendered(NO_RENDERS, SHELL, article("amber"), "/a/amber")
    memory = rendered(memory, SHELL, article("birch"), "/a/birch")
    url = Url("http://site.test/a/amber")

    again = compute_gain(read(SHELL), read(article("amber")), common_additions=memory.list_common_additions(url))

    assert again.is_sufficient


@pytest.mark.parametrize(("mode", "choice"), [("always", RenderChoice.ALWAYS), ("never", RenderChoice.NEVER)])
def test_user_setting_overrides_evidence(mode: str, choice: RenderChoice) -> None:
    found = choose_rendering(SHELL, None, template="/", mode=mode, memory=NO_RENDERS)  # type: ignore[arg-type]
    assert found is choice


@pytest.mark.parametrize(
    ("before", "after", "is_worth_it"),
    [
        (SHELL, "<p>Sold out", True),  # there was almost no text before
        (article("amber") * 9, article("amber") * 9 + "<p>3 comments", False),
        (article("amber"), article("amber") + "<a href=/new>new</a>", True),
        (article("amber"), article("amber"), False),
        (SHELL, SHELL.decode(), False),
    ],
)
def test_few_new_words_are_a_gain_only_without_previous_text(
    before: str | bytes, after: str, is_worth_it: bool
) -> None:
    assert compute_gain(read(before), read(after), common_additions=frozenset()).is_sufficient is is_worth_it


def test_render_memory_is_bounded() -> None:
    memory = NO_RENDERS
    for n in range(MAX_TEMPLATES + 50):
        memory = rendered(memory, SHELL, article(f"tale {n}"), f"/t{n}/x", template=f"/t{n}/*")
    for n in range(MAX_UNRENDERED + 50):
        memory = passed(memory, SHELL, f"/t/{n}", RenderChoice.AWAITED, template="/t/*")

    assert len(memory.templates) <= MAX_TEMPLATES + 2
    assert memory.get_template("/never/seen", RenderEvidence.SHELL) == memory.templates[f"{OTHER_TEMPLATES} shell"]
    assert len(memory.additions) <= MAX_ADDITIONS
    assert len(memory.unrendered) == MAX_UNRENDERED
