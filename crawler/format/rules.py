"""A user's rules for pages, in words."""

from crawler.core.page import View
from crawler.core.page_rules import PageRule
from crawler.format.values import format_count, format_span


def format_rule(rule: PageRule) -> str:
    """Format a rule in a line."""
    said = [
        f"looked at no sooner than after {format_span(rule.least)}" if rule.least is not None else "",
        f"no later than after {format_span(rule.most)}" if rule.most is not None else "",
        f"{rule.weight:g} times as important" if rule.weight is not None else "",
        "never looked at again" if rule.once else "",
        f"{format_count(rule.max_pages, 'page')} at most" if rule.max_pages is not None else "",
        f"compared: {format_view(rule.view)}" if rule.view else "",
        f"in a browser: {rule.render}" if rule.render is not None else "",
    ]
    return f"{rule.pattern}: {', '.join(filter(None, said))}"


def format_view(view: View) -> str:
    """Format which parts of a page are compared; an empty string for all."""
    ignored = " and ".join(view.ignore + tuple(f"what {text!r} finds" for text in view.ignore_text))
    watched = f"only {' and '.join(view.watch)}" if view.watch else ""
    return " ".join(filter(None, [watched or ("all" if ignored else ""), f"without {ignored}" if ignored else ""]))
