"""Choose whether a page is rendered: by its user's word, by the signs in its HTML, and by what renders have brought."""

from typing import Literal

from crawler.core.page.script_signs import has_scripts
from crawler.core.page.snapshot import Parsed
from crawler.core.rendering.memory import RenderMemory
from crawler.core.rendering.outcome import RenderChoice, RenderEvidence, evidence_of

RenderMode = Literal["auto", "always", "never"]


def choice_of(
    body: bytes,
    parsed: Parsed | None,
    *,
    template: str,
    mode: RenderMode,
    memory: RenderMemory,
    is_stored: bool = False,
    is_kept_rendered: bool = False,
    running: int = 0,
) -> RenderChoice:
    """Choose whether a web page that was read without its scripts is rendered as well, and say why.

    parsed: the page as it is without its scripts; None where that is not known.  mode: what its user said.
    is_stored: the page was visited before, so that a probe delays nothing.
    is_kept_rendered: its last Snapshot is of a rendered page, which the next is compared with.
    running: probes of the domain that are under way, and may be in vain.
    """
    if mode != "auto":
        return RenderChoice(mode)
    if not has_scripts(body):
        return RenderChoice.NO_SCRIPTS
    evidence = RenderEvidence.NONE if parsed is None else evidence_of(parsed)
    known = memory.of(template, evidence)
    if is_kept_rendered or memory.is_needed(template, evidence):
        return RenderChoice.NEEDED
    if memory.is_probe_due(template, evidence):
        # An application may have a template for each of its pages. Where its other shells had to be rendered, nothing
        # is gained by storing the first one of a template without what its scripts write.
        is_known_app = evidence is RenderEvidence.SHELL and memory.needs_shells
        is_now = (is_stored or is_known_app) and memory.has_probes_left(evidence, running=running)
        return RenderChoice.PROBE if is_now else RenderChoice.AWAITED
    if evidence is RenderEvidence.NONE and not known.tests:
        return RenderChoice.NO_SIGNS
    is_awaited = not known.tests and memory.has_probes_left(evidence)
    return RenderChoice.AWAITED if is_awaited else RenderChoice.NO_GAIN
