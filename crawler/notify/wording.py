"""Changes in plain words, for mail and chat: a line that says it all, then each change with the words that differ."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from crawler.core.alert.condition import ConditionKind
from crawler.core.change.word_diff import diff_words, excerpt, with_marks
from crawler.core.page.outline import BlockKind
from crawler.store.report import EventKind

Content = Mapping[str, Any]

SHOWN_IN_FULL = 20  # changes of a message; the others have a line each
MOST_EDITS = 3  # blocks of a change
BESIDE, MOST = 60, 240  # characters kept beside a change, and of a change itself
LONGEST_TITLE = 120
HISTORY = "/page"  # of one's own pages (crawler/server/ui/links.py)

# What happened to one page, and how many such changes there are: "3 changed".
WORDS = {
    EventKind.FIRST: ("New page", "new"),
    EventKind.CHANGED: ("Changed", "changed"),
    EventKind.MOVED: ("Moved", "moved"),
    EventKind.GONE: ("Gone", "gone"),
    EventKind.REFUSED: ("May not be fetched any more", "not to be fetched any more"),
    EventKind.BACK: ("Back", "back"),
    EventKind.BOILERPLATE: ("The site's frame changed", "of the site's frame"),
    EventKind.HELD_BACK: ("Pages like this say nothing new and are put off", "put off"),
    EventKind.LET_GO: ("Pages like this are asked for again", "asked for again"),
    EventKind.HINT: ("Said to have changed", "said to have changed"),
}
# What chat services take for a call to somebody, or for a link with another text; no stranger's page may write either.
# Sources: docs.slack.dev, "Formatting text for app surfaces"; docs.mattermost.com, "Mention people"; the message
# references of Discord, Google Chat, Feishu, Kook, Jira and Zulip. apprise 1.13 adds the `<` of Slack's forms where it
# is missing (`!channel>`), and calls whoever stands behind an @ in what it sends to Discord.
_CALLS = re.compile(
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
WORD_JOINER = "\u2060"  # is not seen, and breaks no line
TEST_SUBJECT = "recrawl: a test"
TEST_TEXT = "This is a test. Changes will be told here; nothing has changed now."


def headline(changes: Sequence[Content]) -> str:
    """What happened, in a line."""
    if not changes:
        return TEST_SUBJECT
    if len(changes) == 1:
        return f"{what_of(changes[0])}: {title_of(changes[0])} ({changes[0]['domain']})"
    domains = list(dict.fromkeys(str(change["domain"]) for change in changes))
    where = domains[0] if len(domains) == 1 else f"{domains[0]} and {len(domains) - 1} more"
    counts = Counter(EventKind(change["change"]) for change in changes)
    told = ", ".join(f"{counts[kind]:,} {word}" for kind, (_, word) in WORDS.items() if counts[kind])
    return f"{where}: {told}"


def text_of(changes: Sequence[Content], *, origin: str | None = None) -> str:
    """All of it. origin: of one's own pages, if they are served, for a link to the history of each page."""
    if not changes:
        return TEST_TEXT
    full = ["\n".join(_lines(change, origin=origin)) for change in changes[:SHOWN_IN_FULL]]
    rest = [f"{what_of(change)}: {title_of(change)} {change['url']}" for change in changes[SHOWN_IN_FULL:]]
    return "\n\n".join([*full, *(["\n".join(rest)] if rest else [])])


def what_of(change: Content) -> str:
    """What happened to a page, in a few words."""
    return _condition(change["condition"]) if change.get("condition") else WORDS[EventKind(change["change"])][0]


def title_of(change: Content) -> str:
    """The title of a page, or else its path; in one line, and harmless wherever it is printed."""
    title = printable(change["title"] or _path(change))
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}\u2026"


def history_of(change: Content, origin: str) -> str:
    """The address of a page's history on one's own pages."""
    return f"{origin}{HISTORY}?{urlencode({'url': change['url']})}"


def printable(text: str) -> str:
    """A stranger's text in one line, without characters that would steer whatever shows it."""
    return " ".join("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text).split())


def calling_nobody(text: str) -> str:
    """Return a text in which nothing that a page says calls anybody in a chat, and whose URLs lead where they did."""
    with_safe_urls = _URL.sub(lambda url: url[1] + url[2].replace("@", "%40"), text)  # the same URL (RFC 3986, 3.3)
    return _CALLS.sub(WORD_JOINER, with_safe_urls)


def _lines(change: Content, *, origin: str | None) -> Iterator[str]:
    yield f"{what_of(change)}: {title_of(change)}"
    yield str(change["url"])
    if change["moved_to"]:
        yield f"to {change['moved_to']}"
    if change["pages"]:
        yield f"on {change['pages']:,} pages"
    for edit in change["blocks"][:MOST_EDITS]:  # the words that differ: [-old-]{+new+}
        runs = diff_words(edit["was"] or "", edit["now"] or "", part=BlockKind(edit["part"]))
        yield f"  {printable(with_marks(excerpt(runs, beside=BESIDE, most=MOST)))}"
    left = len(change["blocks"]) - MOST_EDITS
    if left > 0:
        yield f"  and {left} more"
    if origin is not None:
        yield f"Versions: {history_of(change, origin)}"


def _condition(told: Mapping[str, Any]) -> str:
    text, bound = printable(str(told["text"])), told["bound"]
    match ConditionKind(told["kind"]):
        case ConditionKind.APPEARS:
            return f'"{text}" has appeared'
        case ConditionKind.GOES:
            return f'"{text}" has gone'
        case ConditionKind.BELOW:
            return f"{told['now']:g}, below {bound:g}{_was(told)}"
        case ConditionKind.ABOVE:
            return f"{told['now']:g}, above {bound:g}{_was(told)}"


def _was(told: Mapping[str, Any]) -> str:
    return f" (it was {told['was']:g})" if told["was"] is not None else ""


def _path(change: Content) -> str:
    return "/" + str(change["url"]).partition("://")[2].partition("/")[2]
