"""What renders have brought so far, by the templates of a domain's URLs; a few numbers for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from crawler.core.http import Url
from crawler.core.rendering.outcome import NO_GAIN, RenderChoice, RenderGain, hash_of

MOST_TEMPLATES = 200  # of a domain; pages of further ones share one
OTHERS = "*"  # the template that they share
MOST_ADDITIONS = 512  # that are remembered, the latest
EVERYWHERE = 0  # in place of a page: two pages or more have had the addition
KEPT = 0.9  # weight of a render beside the next one: a redesign is believed after ten pages


@dataclass(frozen=True, slots=True)
class TemplateRenders:
    """What renders of one template's pages have brought.

    tests: renders so far.  weight, gains: of all of them and of those that brought something, fading; the newest
    counts 1.  passed: pages with scripts that were not rendered since the last one.
    """

    tests: int = 0
    weight: float = 0.0
    gains: float = 0.0
    passed: int = 0

    @property
    def gain_share(self) -> float:
        """The part of the renders that brought something, 0 to 1; 0 before the first."""
        return self.gains / self.weight if self.weight else 0.0


@dataclass(frozen=True, slots=True)
class RenderMemory:
    """What a domain's renders have brought, by template.

    additions: hashes of lines and links that scripts added, each with the page that had it first, or EVERYWHERE.
    """

    templates: Mapping[str, TemplateRenders] = field(default_factory=dict)
    additions: Mapping[int, int] = field(default_factory=dict, repr=False)

    def of(self, template: str) -> TemplateRenders:
        return self.templates.get(self.key_of(template), TemplateRenders())

    def key_of(self, template: str) -> str:
        """The template under which pages of this one are counted."""
        is_own = template in self.templates or len(self.templates) < MOST_TEMPLATES
        return template if is_own else OTHERS

    def usual_beside(self, url: Url) -> frozenset[int]:
        """Hashes of what scripts add to other pages as well, such as a banner or a menu."""
        page = hash_of(url)
        return frozenset(each for each, first in self.additions.items() if first != page)


NO_RENDERS = RenderMemory()


def memory_after(
    memory: RenderMemory, template: str, url: Url, choice: RenderChoice, gain: RenderGain | None
) -> RenderMemory:
    """The memory after a look at a web page. gain: of its render; None where there was none, or it gave nothing."""
    if choice.is_yes:
        return memory_tested(memory, template, url, gain or NO_GAIN)
    return memory_passed(memory, template) if choice is RenderChoice.NO_GAIN else memory


def memory_tested(memory: RenderMemory, template: str, url: Url, gain: RenderGain) -> RenderMemory:
    """The memory after a render of a page of this template."""
    before = memory.of(template)
    after = TemplateRenders(
        tests=before.tests + 1,
        weight=KEPT * before.weight + 1,
        gains=KEPT * before.gains + gain.is_worth_it,
    )
    page, additions = hash_of(url), dict(memory.additions)
    for each in gain.additions:
        first = additions.pop(each, page)
        additions[each] = page if first == page else EVERYWHERE
    for each in list(additions)[:-MOST_ADDITIONS]:
        del additions[each]
    return RenderMemory(templates={**memory.templates, memory.key_of(template): after}, additions=additions)


def memory_passed(memory: RenderMemory, template: str) -> RenderMemory:
    """The memory after a page with scripts, of this template, was not rendered."""
    before = memory.of(template)
    after = replace(before, passed=before.passed + 1)
    return replace(memory, templates={**memory.templates, memory.key_of(template): after})
