"""Deploys: instants at which many pages of a site changed together, found out by looks at the first few of them.

Of a statically built site most pages change when it is built anew. A look that finds a page changed, which was not to
be expected, speaks for a deploy in the time since the last look at that page; a look over such a time that finds
nothing speaks against it. The logarithms of how much likelier the findings are with a deploy than without are added up
as long as they speak for one (a cumulative sum: Page, "Continuous inspection schemes", Biometrika 1954). Changes that a
deploy told before explains are no news. So on a site whose pages change together few instants explain all changes: the
least number that pierces all gaps with a change, as in scheduling theory, taken as it comes.

A told deploy is a signal about every page that was not looked at since (change_signal.SignalSource.DEPLOY), and what
its word is worth is learnt from looks, as of any source. Where pages change each for itself, that is nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from math import log

SHARE = 0.3  # of the pages, that a deploy changes, as far as it is looked for
ENOUGH = 3.0  # nats: odds of twenty to one for a deploy
SURE = 0.02  # a change that was expected less than that speaks for a deploy no more than so
FADING = 0.9  # of the evidence for a deploy that is left after a look that says nothing of it
MOST_TOLD = 16  # deploys that are remembered; pages not looked at since more of them are due in any case


@dataclass(frozen=True, slots=True)
class DeployWatch:
    """What looks say of deploys of one site.

    evidence: for a deploy at `since` that is not told yet, in nats, 0 or more.  since: the look that spoke for it
    first; None without any.  told: the last deploys, in the order of time.
    """

    evidence: float = 0.0
    since: datetime | None = None
    told: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class LookFinding:
    """What one good look found, for the watch.

    at: of the look.  before: of the good look before it.  expected: the chance of a change that was given before the
    look, 0 to 1.  changed: whether the page's own text had changed.
    """

    at: datetime
    before: datetime
    expected: float
    changed: bool


def watched(watch: DeployWatch, findings: Iterable[LookFinding]) -> DeployWatch:
    """The watch after looks, in the order of time."""
    for finding in findings:
        watch = _after(watch, finding)
    return watch


def _after(watch: DeployWatch, finding: LookFinding) -> DeployWatch:
    if any(finding.before < told for told in watch.told):
        return watch
    said = _evidence(finding)
    if watch.since is not None and finding.before < watch.since:
        evidence = watch.evidence + said
        if evidence >= ENOUGH:
            return DeployWatch(told=(*watch.told, watch.since)[-MOST_TOLD:])
        return replace(watch, evidence=evidence) if evidence > 0 else DeployWatch(told=watch.told)
    left = watch.evidence * FADING
    if finding.changed and said > left:
        return replace(watch, evidence=said, since=finding.at)
    return replace(watch, evidence=left)


def _evidence(finding: LookFinding) -> float:
    """ln of how much likelier a finding is after a deploy than without."""
    if not finding.changed:
        return log(1 - SHARE)
    expected = min(max(finding.expected, SURE), 1.0)
    return log((expected + (1 - expected) * SHARE) / expected)
