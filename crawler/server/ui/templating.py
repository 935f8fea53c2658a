"""How figures, instants and strangers' texts are shown on a page."""

from base64 import b64encode
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from crawler import __version__
from crawler.app.pages import NEVER, BlockStatus, PageLine, get_path_and_query
from crawler.app.try_page import Change, ExplainedBlock
from crawler.format.axes import format_tick
from crawler.format.reasons import HTTP_PREFIX, NO_NEWS_WORDS, format_reason
from crawler.format.reports import format_step
from crawler.format.values import format_bytes, format_count, format_rate, format_share, format_span, sanitize_text
from crawler.server.ui import diffs
from crawler.server.ui.facts import KIND_NAMES, SPANS
from crawler.server.ui.links import get_external_url
from crawler.server.ui.plots import NARROW, WIDE, Plot, Size, compute_layout
from crawler.times import format_instant

STYLE = Path(__file__).with_name("static") / "style.css"


def format_relative(at: datetime, now: datetime) -> str:
    """How long ago or ahead an instant is, in words."""
    if abs(at - now) < timedelta(minutes=1):
        return "now"
    return f"in {format_span(at - now)}" if at > now else f"{format_span(at - now)} ago"


def _render_time(at: datetime, words: str) -> Markup:
    """Words for an instant, with the instant itself to be read."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), format_instant(at), words)


def render_relative(at: datetime | None, now: datetime) -> Markup:
    """An instant as the time that has passed since, or is left until then."""
    return Markup("never") if at is None else _render_time(at, format_relative(at, now))


def render_due(at: datetime | None, now: datetime) -> Markup:
    """When something is next: how long until then, or for how long it has been due."""
    if at is None or at >= NEVER:
        return Markup("never")
    return _render_time(at, f"in {format_span(at - now)}" if at > now else f"due for {format_span(now - at)}")


def render_instant(at: datetime | None) -> Markup:
    """An instant to the minute, in the machine's time zone."""
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), format_instant(at))


def render_lines(text: str) -> Markup:
    """The lines of a text, one below the other."""
    return Markup("<br>").join(escape(line) for line in text.splitlines() if line.strip())


def capitalize_first(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


CHANGE_NAMES = {  # by a look, in a word or two
    Change.ADDED: "first seen",
    Change.UNCHANGED: "the same",
    Change.COSMETIC: "no news",
    Change.CHANGED: "changed",
    Change.MOVED: "moved",
    Change.GONE: "gone",
    Change.RESTORED: "back",
    Change.UNKNOWN: "not to be had",
}


def explain_group(page: PageLine) -> str:
    """Why a page stands in its group, in a few words."""
    why = format_reason(page.reason) if page.reason else ""
    is_status_reason = page.reason.startswith(HTTP_PREFIX)  # the reason is the status
    status = f"status {page.status}" if page.status and page.status >= 400 and not is_status_reason else ""
    times = f"{format_count(page.failures, 'look')} in a row" if page.failures > 1 else ""
    return ", ".join(filter(None, (why, status, times)))


def render_masked(block: ExplainedBlock) -> Markup:
    """The text of a piece with the words that are not compared struck out."""
    rendered, end = Markup(""), 0
    for start, stop in block.masked:
        rendered += Markup('{}<span class="left-out">{}</span>').format(
            sanitize_text(block.text[end:start]), sanitize_text(block.text[start:stop])
        )
        end = stop
    return rendered + escape(sanitize_text(block.text[end:]))


def make_printable(words: str) -> str:
    """Words without characters that no XML may have."""
    return "".join(c if c.isprintable() else "\ufffd" for c in words)


def render_plot(plot: Plot, size: Size = WIDE) -> Markup:
    """The plot as an svg element."""
    svg = get_environment().get_template("plot.svg").render(frame=compute_layout(plot, size))
    return Markup(svg)  # noqa: S704  all that is put into a template is escaped


def hash_style(text: str) -> str:
    """The hash by which a policy allows one style sheet within a page (CSP 3, section 6.7.2.3)."""
    return b64encode(sha256(text.encode()).digest()).decode()


@cache
def get_environment() -> Environment:
    """The templates. All that is put in is escaped; a name that is not given is an error."""
    env = Environment(
        loader=PackageLoader("crawler.server.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "in_words": format_reason,
        "apart": format_relative,
        "bytes": format_bytes,
        "counted": format_count,
        "drawn": render_plot,
        "days": lambda days: format_span(timedelta(days=days)),
        "due": render_due,
        "exactly": render_instant,
        "found_by_look": CHANGE_NAMES.__getitem__,
        "harmless": sanitize_text,
        "outside": get_external_url,
        "paragraphs": render_lines,
        "mark": format_tick,
        "printable": make_printable,
        "px": "{:.1f}".format,
        "rate": format_rate,
        "sentence": capitalize_first,
        "share": format_share,
        "step": format_step,
        "short_url": get_path_and_query,
        "span": format_span,
        "style_hash": hash_style,
        "trusted": Markup,  # the style sheet alone, which is ours
        "when": render_relative,
        "why_grouped": explain_group,
        "with_masks": render_masked,
    }
    env.globals |= {
        "version": __version__,
        "narrow": NARROW,
        "diffs": diffs,
        "names": KIND_NAMES,
        "spans": SPANS,
        "reasons": NO_NEWS_WORDS,
        "BlockStatus": BlockStatus,
    }
    return env


@cache
def read_style() -> str:
    """The style sheet of all pages."""
    return STYLE.read_text(encoding="utf-8")
