"""The results of a domain's renders by URL template, and the decision which pages to render.

Pages of one template are counted separately by the evidence in their HTML (RenderEvidence): a search page among
articles proves nothing about the articles. A probe is a render that tests whether such pages need a browser.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.words import keep_newest
from crawler.core.page.script_signs import has_scripts
from crawler.core.rendering.mode import RenderMode
from crawler.core.rendering.outcome import (
    NO_GAIN,
    RenderChoice,
    RenderEvidence,
    RenderGain,
    find_render_evidence,
    hash_addition,
)

if TYPE_CHECKING:
    from crawler.core.page.snapshot import Parsed

MAX_TEMPLATES = 400  # per domain: pairs of template and evidence; the pages of further templates are counted together
OTHER_TEMPLATES = "*"  # stands for the further templates
ALL_TEMPLATES = "**"  # stands for all templates of a domain
MAX_ADDITIONS = 512  # per domain; the latest ones are kept
MAX_UNRENDERED = 1000  # pages stored without their scripts; the latest ones are kept
EVERYWHERE = 0  # replaces the hash of a page: at least two pages had the addition
RENDER_DECAY = 0.9  # weight of a render relative to the next one: a redesign takes effect after ten pages

NEEDED_SHARE = 0.2  # minimum share of a template's renders with a gain, for all its pages to be rendered
# Minimum number of renders with a gain (TemplateRenders.gains), for all pages of a template to be rendered. A banner
# that scripts add to every page is a gain of the first rendered page, so a second page must confirm it; not of a SHELL.
MIN_GAINS = {RenderEvidence.NONE: 1.5, RenderEvidence.PARTIAL: 1.5, RenderEvidence.SHELL: 1.0}
FIRST_PROBES = {RenderEvidence.NONE: 0, RenderEvidence.PARTIAL: 1, RenderEvidence.SHELL: 2}  # per template
MIN_EVIDENT_SHARE = 0.2  # minimum share of a template's pages with PARTIAL evidence, for one of them to be probed
ENOUGH_EVIDENT = 8  # unrendered pages of a template with evidence, before one of them is selected for the first probe
# A template is probed again after this many unrendered pages. Each of its last renders in a row without a gain adds the
# same number.
PROBE_AGAIN_AFTER = 100
MAX_FRUITLESS = 9  # maximum number of these renders that count
PROBE_BLINDLY_AFTER = 1000  # replaces PROBE_AGAIN_AFTER for pages without evidence
NEXT_CANDIDATE_AFTER = 50  # unrendered pages until another page is selected, because the selected one was not rendered
# Maximum number of a domain's probes without a gain. Each gain adds one, and each page with scripts FRUITLESS_SHARE.
FREE_PROBES = {RenderEvidence.NONE: 0, RenderEvidence.PARTIAL: 3, RenderEvidence.SHELL: 8}
FRUITLESS_SHARE = 0.01
MAX_FAILURES = 3  # incomplete renders in a row, which count as one render without gain


class TemplateRenders(Struct, frozen=True):
    """The results of renders of pages with one template and evidence.

    tests: the number of renders; MAX_FAILURES incomplete ones in a row count as one.
    weight, gains: decaying counts of all renders and of those with a gain; the newest counts 1.
    fruitless: the number of last renders in a row without a gain.
    unrendered: the number of visits to pages with scripts without a render.  unrendered_since: since the last render.
    requested_probes: the number of pages selected for a probe since the last render.
    failures: the number of incomplete renders in a row; see `record_render_failure`.
    """

    tests: int = 0
    weight: float = 0.0
    gains: float = 0.0
    fruitless: int = 0
    unrendered_since: int = 0
    unrendered: int = 0
    requested_probes: int = 0
    failures: int = 0

    @property
    def gain_share(self) -> float:
        """Return the share of renders with a gain, 0 to 1; 0 before the first."""
        return self.gains / self.weight if self.weight else 0.0


class RenderMemory(Struct, frozen=True):
    """The results of a domain's renders, by template and evidence.

    additions: hashes of lines and links that scripts added, each with a hash of the page that had it, or EVERYWHERE.
    unrendered: pages with evidence that were stored without their scripts, each with the key of its entry in
    `templates` (see `build_name`).
    pages, gains, fruitless_probes: numbers of visits to pages with scripts, renders with a gain, and probes without.
    """

    templates: Mapping[str, TemplateRenders] = field(default_factory=dict)
    additions: Mapping[int, int] = field(default_factory=dict)
    unrendered: Mapping[PageKey, str] = field(default_factory=dict)
    pages: int = 0
    gains: int = 0
    fruitless_probes: int = 0

    def get_template(self, template: str, evidence: RenderEvidence) -> TemplateRenders:
        return self.templates.get(self.build_name(template, evidence), TemplateRenders())

    def build_name(self, template: str, evidence: RenderEvidence) -> str:
        """Return the key in `templates` of pages of a template with this evidence."""
        name = f"{template} {evidence}"  # a URL contains no space
        is_counted_apart = template == ALL_TEMPLATES or name in self.templates or len(self.templates) < MAX_TEMPLATES
        return name if is_counted_apart else f"{OTHER_TEMPLATES} {evidence}"

    def is_needed(self, template: str, evidence: RenderEvidence) -> bool:
        """Return whether all pages of a template with this evidence are rendered."""
        renders = self.get_template(template, evidence)
        return renders.gain_share >= NEEDED_SHARE and renders.gains >= MIN_GAINS[evidence]

    @property
    def needs_shells(self) -> bool:
        """Return whether renders of the domain's shells are known to have a gain."""
        return self.is_needed(ALL_TEMPLATES, RenderEvidence.SHELL)

    def may_be_needed(self, template: str) -> bool:
        """Return whether there is a kind of evidence with which all pages of the template are rendered."""
        return any(self.is_needed(template, each) for each in RenderEvidence)

    def list_common_additions(self, url: Url) -> frozenset[int]:
        """Return the hashes of what scripts add to other pages than this one, such as a banner or a menu."""
        page = hash_addition(url)
        return frozenset(each for each, first in self.additions.items() if first != page)

    def has_probes_left(self, evidence: RenderEvidence, *, running: int = 0) -> bool:
        """Return whether the domain may have one more probe of a page with this evidence. running: see is_probe_due."""
        return self.fruitless_probes + running < FREE_PROBES[evidence] + FRUITLESS_SHARE * self.pages + self.gains

    def is_probe_due(self, template: str, evidence: RenderEvidence, *, running: int = 0) -> bool:
        """Return whether the next page of a template with this evidence should be probed.

        running: the number of probes in progress, which may have no gain.
        """
        renders = self.get_template(template, evidence)
        if not self.has_probes_left(evidence, running=running):
            return False
        if renders.tests < FIRST_PROBES[evidence] or (renders.tests == 1 and renders.gains == 1.0):
            return evidence is RenderEvidence.SHELL or self._is_evidence_common(template)
        after = PROBE_AGAIN_AFTER if evidence is not RenderEvidence.NONE else PROBE_BLINDLY_AFTER
        return renders.unrendered_since >= after * (min(renders.fruitless, MAX_FRUITLESS) + 1)

    def _is_evidence_common(self, template: str) -> bool:
        """Return whether a large share of a template's pages shows that a part is missing."""
        partial, plain = (self.get_template(template, each) for each in (RenderEvidence.PARTIAL, RenderEvidence.NONE))
        evident, others = partial.unrendered + partial.tests, plain.unrendered + plain.tests
        return evident >= MIN_EVIDENT_SHARE * (evident + others)


NO_RENDERS = RenderMemory()


def choose_rendering(
    body: bytes,
    parsed: "Parsed | None",
    *,
    template: str,
    mode: RenderMode,
    memory: RenderMemory,
    is_stored: bool = False,
    is_stored_rendered: bool = False,
    running: int = 0,
) -> RenderChoice:
    """Choose whether a web page that was read without its scripts is also rendered, and why.

    body: only used without `parsed`.  parsed: the page without its scripts; None if unknown.  mode: the user's setting.
    is_stored: whether a probe may render the page now; a new page is first stored without its scripts.
    is_stored_rendered: whether its last Snapshot, with which it is compared, is of a rendered page.
    running: the number of the domain's probes in progress, which may have no gain.
    """
    if mode != "auto":
        return RenderChoice(mode)
    if not (has_scripts(body) if parsed is None else parsed.content.is_scripted):
        return RenderChoice.NO_SCRIPTS
    evidence = RenderEvidence.NONE if parsed is None else find_render_evidence(parsed)
    renders = memory.get_template(template, evidence)
    if is_stored_rendered or memory.is_needed(template, evidence):
        return RenderChoice.NEEDED
    if memory.is_probe_due(template, evidence):
        # An application may have one template per page. If other shells of the domain needed rendering, it is useless
        # to store the first page of a template without its scripts.
        is_app = evidence is RenderEvidence.SHELL and memory.needs_shells
        is_now = (is_stored or is_app) and memory.has_probes_left(evidence, running=running)
        return RenderChoice.PROBE if is_now else RenderChoice.AWAITED
    if evidence is RenderEvidence.NONE and not renders.tests:
        return RenderChoice.NO_SIGNS
    is_awaited = not renders.tests and memory.has_probes_left(evidence)
    return RenderChoice.AWAITED if is_awaited else RenderChoice.NO_GAIN


def select_pages_to_render(memory: RenderMemory, *, is_exhausted: bool) -> tuple[tuple[PageKey, ...], RenderMemory]:
    """Return the stored pages to render now, and the memory after that.

    All pages of a template that needs rendering are selected, and one page of each template that needs a probe.
    is_exhausted: whether the domain has no other page to fetch. Then templates with few pages are probed too.
    """
    pages_by_name: dict[str, list[PageKey]] = {}
    for page, name in memory.unrendered.items():
        pages_by_name.setdefault(name, []).append(page)
    chosen: list[PageKey] = []
    after = memory
    for name, pages in pages_by_name.items():
        template, _, kind = name.rpartition(" ")
        evidence, renders = RenderEvidence(kind), memory.templates.get(name, TemplateRenders())
        if memory.is_needed(template, evidence):
            chosen += pages
            continue
        requested, is_known = renders.requested_probes, renders.tests or renders.unrendered >= ENOUGH_EVIDENT
        is_requested = requested and renders.unrendered_since < NEXT_CANDIDATE_AFTER * requested
        if is_requested or not (is_exhausted or evidence is RenderEvidence.SHELL or is_known):
            continue
        if after.is_probe_due(template, evidence, running=len(chosen)):
            chosen.append(pages[-1])
            renders = replace(renders, requested_probes=requested + 1)
            after = replace(after, templates={**after.templates, name: renders})
    if not chosen:
        return (), memory
    remaining = {page: name for page, name in memory.unrendered.items() if page not in set(chosen)}
    return tuple(chosen), replace(after, unrendered=remaining)


_NOT_RENDERED = frozenset({RenderChoice.NO_SIGNS, RenderChoice.NO_GAIN, RenderChoice.AWAITED, RenderChoice.NO_BROWSER})


class ReadPage(Struct, frozen=True):
    """A page read without its scripts, with its evidence and the choice made for it."""

    url: Url
    key: PageKey
    template: str
    evidence: RenderEvidence
    choice: RenderChoice


def update_render_memory(memory: RenderMemory, page: ReadPage, gain: RenderGain | None) -> RenderMemory:
    """Return the memory after a visit to a page, rendered or not.

    gain: the gain of its render. None if it was not rendered, or if the render failed through the fault of the page,
    which counts as a render without a gain. For other failures, see `record_render_failure`.
    """
    if page.choice.is_rendered:
        gain = gain or NO_GAIN
        is_needed = memory.is_needed(page.template, page.evidence)
        memory = replace(memory, additions=_update_additions(memory, page.url, gain))
        # A page that stays rendered has its gain each time, which proves nothing about other pages.
        if page.choice is RenderChoice.NEEDED and gain.is_sufficient and not is_needed:
            return memory
        return _record_test(memory, page, is_gain=gain.is_sufficient)
    if page.choice in _NOT_RENDERED:
        renders = memory.get_template(page.template, page.evidence)
        renders = replace(renders, unrendered_since=renders.unrendered_since + 1, unrendered=renders.unrendered + 1)
        return replace(_record_unrendered(memory, page, renders), pages=memory.pages + 1)
    return memory


def record_render_failure(memory: RenderMemory, page: ReadPage) -> RenderMemory:
    """Return the memory after a render that did not finish, although the page is not at fault.

    The page is rendered again later, but MAX_FAILURES in a row count as one render without a gain.
    """
    renders = memory.get_template(page.template, page.evidence)
    if renders.failures + 1 >= MAX_FAILURES:
        return _record_test(memory, page, is_gain=False)
    return _record_unrendered(memory, page, replace(renders, failures=renders.failures + 1, requested_probes=0))


def _update_additions(memory: RenderMemory, url: Url, gain: RenderGain) -> Mapping[int, int]:
    page, additions = hash_addition(url), dict(memory.additions)
    for each in gain.additions:
        first = additions.pop(each, page)
        additions[each] = page if first == page else EVERYWHERE
    return keep_newest(additions, MAX_ADDITIONS)


def _record_test(memory: RenderMemory, page: ReadPage, *, is_gain: bool) -> RenderMemory:
    templates = dict(memory.templates)
    for each in dict.fromkeys((memory.build_name(page.template, page.evidence), f"{ALL_TEMPLATES} {page.evidence}")):
        before = templates.get(each, TemplateRenders())
        templates[each] = TemplateRenders(
            tests=before.tests + 1,
            weight=RENDER_DECAY * before.weight + 1,
            gains=RENDER_DECAY * before.gains + is_gain,
            fruitless=0 if is_gain else before.fruitless + 1,
            unrendered=before.unrendered,
        )
    return replace(
        memory,
        templates=templates,
        unrendered={key: name for key, name in memory.unrendered.items() if key != page.key},
        pages=memory.pages + 1,
        gains=memory.gains + is_gain,
        fruitless_probes=memory.fruitless_probes + (page.choice is RenderChoice.PROBE and not is_gain),
    )


def _record_unrendered(memory: RenderMemory, page: ReadPage, renders: TemplateRenders) -> RenderMemory:
    """Return the memory after a page was stored without its scripts. renders: the new results of its template."""
    name, unrendered = memory.build_name(page.template, page.evidence), memory.unrendered
    if page.evidence is not RenderEvidence.NONE:
        latest = {key: other for key, other in unrendered.items() if key != page.key} | {page.key: name}
        unrendered = keep_newest(latest, MAX_UNRENDERED)
    return replace(memory, templates={**memory.templates, name: renders}, unrendered=unrendered)
