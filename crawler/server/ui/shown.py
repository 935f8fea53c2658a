"""How figures, instants and strangers' texts are shown on a page."""

from base64 import b64encode
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from crawler import __version__
from crawler.app.pages import NEVER, BlockStatus, PageLine, path_and_query
from crawler.app.try_page import Change, ExplainedBlock
from crawler.format.axes import format_mark
from crawler.format.reasons import HTTP_PREFIX, NO_NEWS_WORDS, format_reason
from crawler.format.reports import format_step
from crawler.format.values import format_bytes, format_count, format_rate, format_share, format_span, harmless
from crawler.server.ui import diffs
from crawler.server.ui.facts import NAMES, SPANS
from crawler.server.ui.links import outside
from crawler.server.ui.plots import NARROW, ROOMY, Plot, Size, frame_of
from crawler.times import format_instant

STYLE = Path(__file__).with_name("static") / "style.css"


def apart(at: datetime, now: datetime) -> str:
    """How long ago or ahead an instant is, in words."""
    if abs(at - now) < timedelta(minutes=1):
        return "now"
    return f"in {format_span(at - now)}" if at > now else f"{format_span(at - now)} ago"


def _time(at: datetime, words: str) -> Markup:
    """Words for an instant, with the instant itself to be read."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), format_instant(at), words)


def when(at: datetime | None, now: datetime) -> Markup:
    """An instant as the time that has passed since, or is left until then."""
    return Markup("never") if at is None else _time(at, apart(at, now))


def due(at: datetime | None, now: datetime) -> Markup:
    """When something is next: how long until then, or for how long it has been due."""
    if at is None or at >= NEVER:
        return Markup("never")
    return _time(at, f"in {format_span(at - now)}" if at > now else f"due for {format_span(now - at)}")


def exactly(at: datetime | None) -> Markup:
    """An instant to the minute, in the machine's time zone."""
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), format_instant(at))


def paragraphs(text: str) -> Markup:
    """The lines of a text, one below the other."""
    return Markup("<br>").join(escape(line) for line in text.splitlines() if line.strip())


def sentence(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


FOUND = {  # by a look, in a word or two
    Change.FIRST: "first seen",
    Change.SAME: "the same",
    Change.COSMETIC: "no news",
    Change.CHANGED: "changed",
    Change.MOVED: "moved",
    Change.GONE: "gone",
    Change.BACK: "back",
    Change.UNKNOWN: "not to be had",
}


def why_grouped(page: PageLine) -> str:
    """Why a page stands in its group, in a few words."""
    why = format_reason(page.reason) if page.reason else ""
    is_told = page.reason.startswith(HTTP_PREFIX)  # the reason is the status
    status = f"status {page.status}" if page.status and page.status >= 400 and not is_told else ""
    times = f"{format_count(page.failures, 'look')} in a row" if page.failures > 1 else ""
    return ", ".join(filter(None, (why, status, times)))


def with_masks(piece: ExplainedBlock) -> Markup:
    """The text of a piece with the words that are not compared struck out."""
    found, end = Markup(""), 0
    for start, stop in piece.masked:
        found += Markup('{}<span class="left-out">{}</span>').format(
            harmless(piece.text[end:start]), harmless(piece.text[start:stop])
        )
        end = stop
    return found + escape(harmless(piece.text[end:]))


def printable(words: str) -> str:
    """Words without characters that no XML may have."""
    return "".join(c if c.isprintable() else "\ufffd" for c in words)


def drawn(plot: Plot, size: Size = ROOMY) -> Markup:
    """The plot as an svg element."""
    svg = environment().get_template("plot.svg").render(frame=frame_of(plot, size))
    return Markup(svg)  # noqa: S704  all that is put into a template is escaped


def style_hash(text: str) -> str:
    """The hash by which a policy allows one style sheet within a page (CSP 3, section 6.7.2.3)."""
    return b64encode(sha256(text.encode()).digest()).decode()


@cache
def environment() -> Environment:
    """The templates. All that is put in is escaped; a name that is not given is an error."""
    made = Environment(
        loader=PackageLoader("crawler.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "in_words": format_reason,
        "apart": apart,
        "bytes": format_bytes,
        "counted": format_count,
        "drawn": drawn,
        "days": lambda days: format_span(timedelta(days=days)),
        "due": due,
        "exactly": exactly,
        "found_by_look": FOUND.__getitem__,
        "harmless": harmless,
        "outside": outside,
        "paragraphs": paragraphs,
        "mark": format_mark,
        "printable": printable,
        "px": "{:.1f}".format,
        "rate": format_rate,
        "sentence": sentence,
        "share": format_share,
        "step": format_step,
        "short_url": path_and_query,
        "span": format_span,
        "style_hash": style_hash,
        "trusted": Markup,  # the style sheet alone, which is ours
        "when": when,
        "why_grouped": why_grouped,
        "with_masks": with_masks,
    }
    made.globals |= {
        "version": __version__,
        "narrow": NARROW,
        "diffs": diffs,
        "names": NAMES,
        "spans": SPANS,
        "reasons": NO_NEWS_WORDS,
        "BlockStatus": BlockStatus,
    }
    return made


@cache
def style() -> str:
    """The style sheet of all pages."""
    return STYLE.read_text(encoding="utf-8")
