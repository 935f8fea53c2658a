"""The template environment: filters for figures, times and untrusted texts."""

import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from crawler import __version__
from crawler.app.changes import EventKind
from crawler.app.page_list import ListedPage
from crawler.app.pages import NEVER, BlockStatus, PageCategory, PageLine, get_path_and_query
from crawler.app.settings import MACHINE_SETTINGS
from crawler.app.try_page import Change, ExplainedBlock
from crawler.format.axes import format_tick
from crawler.format.explanation import format_due_reason
from crawler.format.reasons import (
    EVIDENCE_WORDS,
    FINDING_WORDS,
    HTTP_PREFIX,
    MASK_REASON_WORDS,
    format_reading,
    format_reason,
)
from crawler.format.reports import format_step
from crawler.format.values import format_bytes, format_count, format_rate, format_share, format_span, sanitize_text
from crawler.server.ui import diffs
from crawler.server.ui.change_and_url_pages import KIND_NAMES, SPANS
from crawler.server.ui.domain_tabs import Tab
from crawler.server.ui.links import get_external_url
from crawler.server.ui.plots import NARROW, WIDE, Dot, Plot, Size, compute_layout
from crawler.times import format_instant

_BRACKETED = re.compile(r"\[([^\[\]]{1,80})\]")
STYLE = Path(__file__).with_name("static") / "style.css"


def format_relative(at: datetime, now: datetime) -> str:
    """Return how long ago an instant is, or how far ahead, in words."""
    if abs(at - now) < timedelta(minutes=1):
        return "now"
    return f"in {format_span(at - now)}" if at > now else f"{format_span(at - now)} ago"


def _render_time(at: datetime, words: str) -> Markup:
    """Return a time element with these words; its tooltip is the instant."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), format_instant(at), words)


def render_relative(at: datetime | None, now: datetime) -> Markup:
    """Return an instant relative to now, such as 5 minutes ago."""
    return Markup("never") if at is None else _render_time(at, format_relative(at, now))


def render_due(at: datetime | None, now: datetime) -> Markup:
    """Return a due time relative to now: in 5 minutes, overdue by 5 minutes, or never."""
    if at is None or at >= NEVER:
        return Markup("never")
    return _render_time(at, f"in {format_span(at - now)}" if at > now else f"overdue by {format_span(now - at)}")


def render_instant(at: datetime | None) -> Markup:
    """Return an instant to the minute, in the machine's time zone."""
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), format_instant(at))


def render_lines(text: str) -> Markup:
    """Return the lines of a text that are not blank, separated by br elements."""
    return Markup("<br>").join(escape(line) for line in text.splitlines() if line.strip())


def capitalize_first(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


# The displayed name of each verdict.
CHANGE_NAMES = {
    Change.ADDED: "added",
    Change.UNCHANGED: "unchanged",
    Change.COSMETIC: "only ignored differences",
    Change.CHANGED: "changed",
    Change.MOVED: "moved",
    Change.GONE: "gone",
    Change.RESTORED: "restored",
    Change.UNKNOWN: "failed",
}


def explain_group(page: PageLine) -> str:
    """Return why a page is in its group (failing, gone, moved ...), in a few words."""
    why = format_reason(page.reason) if page.reason else ""
    is_status_reason = page.reason.startswith(HTTP_PREFIX)  # the reason is the status
    status = f"status {page.status}" if page.status and page.status >= 400 and not is_status_reason else ""
    times = f"{format_count(page.failures, 'failed visit')} in a row" if page.failures > 1 else ""
    return ", ".join(filter(None, (why, status, times)))


def format_next_visit(page: ListedPage, now: datetime) -> Markup:
    """Return when a page in a list is visited next."""
    is_waiting = page.due_at is None and page.category is PageCategory.UNFETCHED
    return Markup("in order") if is_waiting else render_due(page.due_at, now)


def render_marked_words(excerpt: str) -> Markup:
    """Return an excerpt of the search index, whose search words are in brackets, with these words emphasized."""
    parts = _BRACKETED.split(sanitize_text(excerpt))
    strong = Markup("<strong>{}</strong>")
    return Markup("").join(strong.format(part) if n % 2 else escape(part) for n, part in enumerate(parts))


def format_dot_position(dot: Dot, plot: Plot) -> str:
    """Return the position of a point on the x axis of a plot, for a table of its values."""
    return f"{datetime.fromtimestamp(dot.x, UTC):%Y-%m-%d %H:%M}" if plot.has_times else f"{dot.x:,.4g}"


def render_masked(block: ExplainedBlock) -> Markup:
    """Return the text of a block with the words that are not compared struck out."""
    rendered, end = Markup(""), 0
    for start, stop in block.masked:
        compared, masked = sanitize_text(block.text[end:start]), sanitize_text(block.text[start:stop])
        rendered += Markup('{}<span class="left-out">{}</span>').format(compared, masked)
        end = stop
    return rendered + escape(sanitize_text(block.text[end:]))


def make_printable(words: str) -> str:
    """Replace unprintable characters, some of which XML does not allow."""
    return "".join(c if c.isprintable() else "\ufffd" for c in words)


def render_plot(plot: Plot, size: Size = WIDE) -> Markup:
    """Return the plot as an svg element."""
    svg = get_environment().get_template("plot.svg").render(frame=compute_layout(plot, size))
    return Markup(svg)  # noqa: S704  the template escapes all values


def hash_style(text: str) -> str:
    """Return the hash with which a content security policy allows an inline style sheet (CSP 3, section 6.7.2.3)."""
    return b64encode(sha256(text.encode()).digest()).decode()


@cache
def get_environment() -> Environment:
    """Return the template environment. It escapes all values except Markup; an undefined name is an error."""
    env = Environment(
        loader=PackageLoader("crawler.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "reason_text": format_reason,
        "bytes": format_bytes,
        "pluralize": format_count,
        "plot_svg": render_plot,
        "days": lambda days: format_span(timedelta(days=days)),
        "due_time": render_due,
        "evidence_text": lambda evidence: EVIDENCE_WORDS.get(evidence, evidence),
        "absolute_time": render_instant,
        "reading": lambda each: format_reading(each.number, each.unit, each.finding),
        "verdict": CHANGE_NAMES.__getitem__,
        "sanitize": sanitize_text,
        "external_url": get_external_url,
        "line_breaks": render_lines,
        "tick": format_tick,
        "printable": make_printable,
        "px": "{:.1f}".format,
        "rate": format_rate,
        "sentence": capitalize_first,
        "share": format_share,
        "step": format_step,
        "short_url": get_path_and_query,
        "span": format_span,
        "style_hash": hash_style,
        "trusted": Markup,  # only for the style sheet, which belongs to recrawl
        "relative_time": render_relative,
        "group_reason": explain_group,
        "masked_text": render_masked,
        "next_page_visit": format_next_visit,
        "due_reason": format_due_reason,
        "longest_change": lambda blocks: max(
            (len(side or "") for b in blocks for side in (b.before, b.after)), default=0
        ),
        "marked_words": render_marked_words,
        "dot_position": format_dot_position,
    }
    env.globals |= {
        "version": __version__,
        "narrow": NARROW,
        "diffs": diffs,
        "kind_names": KIND_NAMES,
        "periods": SPANS,
        "mask_reasons": MASK_REASON_WORDS,
        "finding_words": FINDING_WORDS,
        "BlockStatus": BlockStatus,
        "all_tabs": tuple(Tab),
        "kinds": tuple(EventKind),
        "machine_settings": MACHINE_SETTINGS,
    }
    return env


@cache
def read_style() -> str:
    """Return the style sheet of all pages."""
    return STYLE.read_text(encoding="utf-8")
