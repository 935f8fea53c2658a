"""Measurements of a crawl of a graph: its error by visits, after a change of the links, and while they change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from crawler.core.opic.opic import FIRST_SEEDS, VIRTUAL_PAGE_SHARE, WINDOW_PASSES
from labs.experiments.fixpoint import Errors, errors, fixpoint, offline_errors
from labs.experiments.graph import Floats, Graph, relinked, reweighed
from labs.experiments.interpolation import Interpolation, follow
from labs.experiments.opic import Crawl, SelectionOrder
from labs.experiments.windows import PRODUCT, WindowPolicy, estimate

CHANGED_SHARE = 0.1  # of the links, in the experiment about the reaction
BACK = 1.1  # the error counts as recovered below this multiple of the error of a crawl that never saw the old links
LAST = 4  # passes over which the error of a changing graph is averaged, since it fluctuates
WARM_UP = 16  # passes of visits before a graph starts to change
PARTS = 4  # changes of a changing graph per pass


@dataclass(frozen=True, slots=True, eq=False)
class LabRun:
    """An experiment on a graph. passes: of as many visits each as there are pages.  batch: pages at a time.

    root_cash: initial endowments of page 0.  virtual_page_share: share of each visit's cash for the virtual page.
    progress: called with the number of visits made.
    """

    graph: Graph
    passes: int
    seed: int
    policy: WindowPolicy = PRODUCT
    batch: int = 1
    root_cash: float = FIRST_SEEDS
    virtual_page_share: float = VIRTUAL_PAGE_SHARE
    progress: Callable[[int], None] = lambda _visits: None


@dataclass(frozen=True, slots=True)
class Point:
    """An error. visits: of each page, on average, so far.  windows: elapsed windows of the product's clock."""

    visits: float
    windows: float
    errors: Errors

    @property
    def error_factor(self) -> float:
        """Return the paper's bound of the error, 1 / G, for a clock G in passes."""
        return 1 / (self.windows * WINDOW_PASSES)


@dataclass(frozen=True, slots=True)
class Curve:
    """The error of one order of visits over time."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """The errors of one order of visits as multiples of another's, after a number of visits of each page.

    factor: by the paper's bound, 1 / G.  every, top: by the mean error of all pages, and of the most important tenth.
    """

    visits: float
    factor: float
    every: float
    top: float


@dataclass(frozen=True, slots=True)
class Reaction:
    """The recovery of the error after a share of the links was replaced.

    before: the last error with the old links.  points: from the moment of the change on, with visits and windows since
    then.
    settled: the error of a crawl that never saw the old links, after as many visits in total.
    """

    before: Errors
    points: tuple[Point, ...]
    settled: Errors

    @property
    def windows_until_back(self) -> float | None:
        """Return the windows until the mean error of all pages was at most BACK times the settled one, or None."""
        return next((p.windows for p in self.points if p.errors.every <= BACK * self.settled.every), None)

    def left_after(self, windows: float) -> float:
        """Return the share of the increase of the mean error of all pages that remained after a number of windows."""
        jump = self.points[0].errors.every - self.settled.every
        last = [p for p in self.points if p.windows <= windows][-1]
        return (last.errors.every - self.settled.every) / jump


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of a window policy on a graph in which a share of the pages, `rate`, changes per pass.

    numbers: how many numbers the policy stores per page.
    """

    policy: str
    rate: float
    errors: Errors
    numbers: float


def converge(trial: LabRun, selection: SelectionOrder) -> Curve:
    """Return the error after each pass, as in the paper's figures 2 and 3."""
    return Curve(selection.value, tuple(_points(trial, _crawl(trial, selection))))


def beside(one: Curve, other: Curve) -> tuple[Beside, ...]:
    """Return the errors of one curve as multiples of the other's, after each pass."""
    return tuple(
        Beside(
            a.visits,
            factor=a.error_factor / b.error_factor,
            every=a.errors.every / b.errors.every,
            top=a.errors.top / b.errors.top,
        )
        for a, b in zip(one.points, other.points, strict=True)
    )


def interpolate(trial: LabRun, *, passes: int) -> Interpolation:
    """Follow the product's window for a number of passes of greedy visits, as in the paper's figure 1."""
    crawl = _crawl(trial, SelectionOrder.GREEDY)
    return follow(crawl, trial.graph, passes=passes, seed=trial.seed, progress=trial.progress)


def offline_curve(graph: Graph, *, passes: int, virtual_page_share: float = VIRTUAL_PAGE_SHARE) -> Curve:
    """Return the error of the off-line iteration, which reads every page once per pass."""
    found = offline_errors(graph, passes=passes, virtual_page_share=virtual_page_share)
    return Curve("off-line", tuple(Point(n, n / WINDOW_PASSES, each) for n, each in enumerate(found, start=1)))


def react(trial: LabRun, selection: SelectionOrder, *, after: int) -> Reaction:
    """Crawl for the trial's passes, replace a tenth of the links, and measure the error for `after` more passes."""
    crawl = _crawl(trial, selection)
    before = list(_points(trial, crawl))[-1]
    now = replace(trial, graph=relinked(trial.graph, CHANGED_SHARE, seed=trial.seed), passes=after)
    crawl.become(now.graph)
    at_once = Point(0.0, 0.0, errors(estimate(crawl, trial.policy).importance, _truth(now)))
    since = [replace(p, windows=p.windows - before.windows) for p in _points(now, crawl)]
    control = replace(now, passes=trial.passes + after)
    settled = list(_points(control, _crawl(control, selection)))[-1]
    return Reaction(before=before.errors, points=(at_once, *since), settled=settled.errors)


def live(trial: LabRun, policies: Sequence[WindowPolicy], *, rate: float) -> list[Ranking]:
    """Crawl a graph that keeps changing for the trial's passes, greedily, and compare windows over the same visits.

    rate: the share of the pages whose links double or halve per pass, as in the paper's figure 4.
    """
    crawl, graph = _crawl(trial, SelectionOrder.GREEDY), trial.graph
    for _ in range(WARM_UP):
        crawl.visit(graph.pages)
        trial.progress(graph.pages)
    found: list[list[Ranking]] = []
    for n in range(trial.passes):
        graph = _pass_of_changes(crawl, graph, rate=rate, seed=trial.seed + n * PARTS)
        trial.progress(graph.pages)
        if n >= trial.passes - LAST:
            found.append(_standings(crawl, policies, rate=rate, truth=_truth(replace(trial, graph=graph))))
    return [_mean(each) for each in zip(*found, strict=True)]


def _crawl(trial: LabRun, selection: SelectionOrder) -> Crawl:
    return Crawl(
        trial.graph,
        selection=selection,
        seed=trial.seed,
        batch=trial.batch,
        root_cash=trial.root_cash,
        virtual_page_share=trial.virtual_page_share,
    )


def _truth(trial: LabRun) -> Floats:
    return fixpoint(trial.graph, virtual_page_share=trial.virtual_page_share)


def _points(trial: LabRun, crawl: Crawl) -> Iterator[Point]:
    graph = trial.graph
    truth = _truth(trial)
    for n in range(1, trial.passes + 1):
        crawl.visit(graph.pages)
        trial.progress(graph.pages)
        yield Point(n, crawl.passes / WINDOW_PASSES, errors(estimate(crawl, trial.policy).importance, truth))


def _pass_of_changes(crawl: Crawl, graph: Graph, *, rate: float, seed: int) -> Graph:
    for part in range(PARTS):
        graph = reweighed(graph, rate / PARTS, seed=seed + part)
        crawl.become(graph)
        crawl.visit(graph.pages // PARTS)
    return graph


def _standings(crawl: Crawl, policies: Sequence[WindowPolicy], *, rate: float, truth: Floats) -> list[Ranking]:
    estimates = [(policy, estimate(crawl, policy)) for policy in policies]
    return [
        Ranking(str(policy), rate, errors(each.importance, truth), each.numbers_per_page) for policy, each in estimates
    ]


def _mean(standings: Sequence[Ranking]) -> Ranking:
    """Return the mean results of one policy after several passes."""
    count, first = len(standings), standings[0]
    mean = Errors(
        every=sum(s.errors.every for s in standings) / count,
        top=sum(s.errors.top for s in standings) / count,
        spearman=sum(s.errors.spearman for s in standings) / count,
    )
    return Ranking(first.policy, first.rate, mean, sum(s.numbers for s in standings) / count)
