"""The text of email and chat messages: a subject line, then each change with the words that differ."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from crawler.core.alert.condition import ConditionKind
from crawler.core.change.word_diff import WordRun, diff_words, format_runs, shorten_runs
from crawler.core.page.block import BlockKind
from crawler.core.page.values import format_value
from crawler.format.reasons import format_reason
from crawler.format.values import format_share
from crawler.store.report import EventKind

Content = Mapping[str, Any]  # a change, as returned by payload.build_content

MAX_FULL_CHANGES = 20  # changes that are shown with their blocks; the others have one line each
MAX_EDITS = 3  # blocks shown per change
MAX_TITLE_CHARS = 120
HISTORY_PATH = "/page"  # the path of a page's history in the web UI (crawler/server/ui/links.py)

# The heading of one change, and the word after a count of such changes: "3 changed".
KIND_PHRASES = {
    EventKind.ADDED: ("Added", "added"),
    EventKind.CHANGED: ("Changed", "changed"),
    EventKind.MOVED: ("Moved", "moved"),
    EventKind.GONE: ("Gone", "gone"),
    EventKind.EXCLUDED: ("Excluded from crawling", "excluded"),
    EventKind.RESTORED: ("Restored", "restored"),
    EventKind.TEMPLATE: ("Site template changed", "in the site template"),
    EventKind.DEFERRED: ("Similar pages deferred", "deferred"),
    EventKind.RESUMED: ("Similar pages resumed", "resumed"),
    EventKind.HINT: ("Change signal", "reported as changed"),
    EventKind.FAILING: ("Failing", "failing"),
    EventKind.RECOVERED: ("Recovered", "recovered"),
    EventKind.VALUE: ("Value changed", "value changes"),
}
# The forms that chat services read as mentions or as links with another text; crawled text must produce neither.
# Sources: docs.slack.dev, "Formatting text for app surfaces"; docs.mattermost.com, "Mention people"; the message
# references of Discord, Google Chat, Feishu, Kook, Jira and Zulip. apprise 1.13 adds a missing `<` to Slack's forms
# (`!channel>`), and mentions every name after an @ in messages to Discord.
_MENTIONS = re.compile(
    r"""
      (?<=<) (?= [!@#&~] | [a-z][a-z0-9+.-]*: | users/ | at[\s>] )    # <!channel>, <@U1>, <https://a|b>, <users/all>
    | (?<=(?<![^\W_])@) (?= \S )                                          # @everyone, @**all**, but not me@example.com
    | (?<=@) (?= everyone | here | (?:all|channel|room)(?![^\W_]) )               # me@everyone
    | (?<=[!@]) (?= [^|\s]+ (?: [^\S\n]* \| [^\n]* )? (?:>|&gt;) )   # !channel>, U1@U2|name>
    | (?<=:) (?= //[^|\s]+ [^\S\n]* \| [^\n]* (?:>|&gt;) )           # https://a|b>
    | (?<=\() (?= (?:met|rol)\) )                                     # (met)all(met)
    | (?<=\[) (?= ~ | CQ: )                                           # [~name], [CQ:at,qq=all]
    """,
    re.IGNORECASE | re.VERBOSE,
)
_URL = re.compile(r"(\bhttps?://[^\s<>|/?#]*)([^\s<>|]*)", re.IGNORECASE)
WORD_JOINER = "\u2060"  # invisible, and does not allow a line break


def format_headline(changes: Sequence[Content]) -> str:
    """Return the subject line."""
    if not changes:
        return "recrawl: test message"
    if len(changes) == 1:
        domain = "" if is_about_domain(changes[0]) else f" ({changes[0]['domain']})"
        return f"{describe_change(changes[0])}: {format_title(changes[0])}{domain}"
    domains = list(dict.fromkeys(str(change["domain"]) for change in changes))
    where = domains[0] if len(domains) == 1 else f"{domains[0]} and {len(domains) - 1} more"
    counts = Counter(EventKind(change["change"]) for change in changes)
    summary = ", ".join(f"{counts[kind]:,} {word}" for kind, (_, word) in KIND_PHRASES.items() if counts[kind])
    return f"{where}: {summary}"


def format_changes(changes: Sequence[Content], *, origin: str | None = None) -> str:
    """Return the text of a message. origin: the origin of the web UI for links to page histories, or None."""
    if not changes:
        return "This is a test message. recrawl will send changes here. Nothing has changed now."
    full = ["\n".join(_format_lines(change, origin=origin)) for change in changes[:MAX_FULL_CHANGES]]
    rest = [f"{describe_change(each)}: {format_title(each)} {each['url']}" for each in changes[MAX_FULL_CHANGES:]]
    return "\n\n".join([*full, *(["\n".join(rest)] if rest else [])])


def shorten_for_message(runs: Sequence[WordRun]) -> tuple[WordRun, ...]:
    """Return a changed block without the words that are far from any change."""
    return shorten_runs(runs, context_chars=60, max_chars=240)


def describe_change(change: Content) -> str:
    """Return the kind of a change in a few words."""
    condition = change.get("condition")
    if condition:
        return _describe_condition(condition, unit=(change.get("value") or {}).get("unit", ""))
    phrase = KIND_PHRASES[EventKind(change["change"])][0]
    return f"Domain {phrase.lower()}" if is_about_domain(change) else phrase


def is_about_domain(change: Content) -> bool:
    """Return whether the whole domain is failing or has recovered, and not one page."""
    return change["change"] in {EventKind.FAILING, EventKind.RECOVERED} and not change["version"]


def format_title(change: Content) -> str:
    """Return the title of a page, or its path, as one line of printable characters."""
    path = "/" + str(change["url"]).partition("://")[2].partition("/")[2]
    title = make_printable(change["domain"] if is_about_domain(change) else change["title"] or path)
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}\u2026"


def build_change_history_url(change: Content, origin: str) -> str:
    """Return the address of a page's history in the web UI."""
    return f"{origin}{HISTORY_PATH}?{urlencode({'url': change['url']})}"


def make_printable(text: str) -> str:
    """Return crawled text as one line without control characters."""
    return " ".join("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text).split())


def neutralize_mentions(text: str) -> str:
    """Return a text without mentions or disguised links for chat services; its URLs still work."""
    with_safe_urls = _URL.sub(lambda url: url[1] + url[2].replace("@", "%40"), text)  # the same URL (RFC 3986, 3.3)
    return _MENTIONS.sub(WORD_JOINER, with_safe_urls)


def _format_lines(change: Content, *, origin: str | None) -> Iterator[str]:
    yield f"{describe_change(change)}: {format_title(change)}"
    yield str(change["url"])
    if change["moved_to"]:
        yield f"to {change['moved_to']}"
    if change.get("reason"):
        yield make_printable(format_reason(change["reason"]))
    if change["pages"]:
        yield f"on {change['pages']:,} pages"
    for edit in change["blocks"][:MAX_EDITS]:  # the words that differ: [-old-]{+new+}
        runs = diff_words(edit["was"] or "", edit["now"] or "", kind=BlockKind(edit["part"]))
        yield f"  {make_printable(format_runs(shorten_for_message(runs)))}"
    remaining = len(change["blocks"]) - MAX_EDITS
    if remaining > 0:
        yield f"  and {remaining} more"
    if origin is not None:
        yield f"Versions: {build_change_history_url(change, origin)}"


def _describe_condition(fulfilled: Mapping[str, Any], *, unit: str = "") -> str:
    """Return the condition that a change has fulfilled. unit: of the value that it is about, if any."""
    text, bound = make_printable(str(fulfilled["text"])), fulfilled["bound"]
    was, now = (None if fulfilled[side] is None else format_value(fulfilled[side], unit) for side in ("was", "now"))
    previous, name = f" (it was {was})" if was is not None else "", f"{text} " if text else ""
    match ConditionKind(fulfilled["kind"]):
        case ConditionKind.APPEARS:
            return f'"{text}" appeared'
        case ConditionKind.DISAPPEARS:
            return f'"{text}" disappeared'
        case ConditionKind.BELOW:
            return f"{name}{now}, below {bound:.15g}{previous}"
        case ConditionKind.ABOVE:
            return f"{name}{now}, above {bound:.15g}{previous}"
        case ConditionKind.DIFFERS:
            return f"{name}{now}, by {format_share(bound)} or more{previous}"
