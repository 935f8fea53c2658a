"""A documentation site that is rebuilt with each release: real dates and sizes of changes, with made-up words.

From benchmarks/deploys: which release of a project changed how many paragraphs of which page. Each release changes the
template, too. Time runs PACE times as fast as it did, so that there are enough releases to measure.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from benchmarks.deploys.histories import PageLife, real
from benchmarks.deploys.site import BuiltSite
from labs.histories.writer import HistoryWriter

PACE = 3
SEE_ALSO = 5  # links of a page to other pages
START = datetime(2026, 1, 1, tzinfo=UTC)


def write_releases(folder: Path, *, of: str, days: int) -> str:
    """Write the days with the most releases, and return a line that describes the history."""
    history = real(of, Random(of), None, frame_only=0)
    span = days * PACE
    begin = max(history.days, key=lambda at: bisect_left(history.days, at + span) - bisect_left(history.days, at))
    site = BuiltSite(history)
    pages = {
        f"/{page.name}.html": page for page in history.pages if page.name != "index"
    }  # the index of all pages is added anyway
    writer = HistoryWriter(folder)
    for at in history.days[bisect_left(history.days, begin) : bisect_left(history.days, begin + span)]:
        site.day, day = at, (at - begin) / PACE
        writer.put(day, "index.html", _lines(site.body("/") or ""))
        for path, page in pages.items():
            body = site.body(path)
            shown = None if body is None else _with_links(body, page, pages)
            writer.put(day, path.removeprefix("/"), shown)
    return writer.close(START, days)


def _with_links(body: str, page: PageLife, pages: Mapping[str, PageLife]) -> str:
    """Add links to pages that were there when this one appeared; few pages get most of them, as in real manuals."""
    rng = Random(page.name)
    older = [url for url, other in pages.items() if other.born <= page.born]
    Random("order").shuffle(older)
    places = {min(int(rng.paretovariate(0.5)), len(older)) - 1 for _ in range(SEE_ALSO)}
    links = "".join(f'<li><a href="{older[n]}">{older[n]}</a></li>' for n in sorted(places))
    return _lines(body.replace("</main>", f"<ul>{links}</ul></main>"))


def _lines(body: str) -> str:
    """Put each element on a separate line: a page's own text is determined by lines."""
    return re.sub(r">(?=<)", ">\n", body)
