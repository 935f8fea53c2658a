"""recrawl explain: its options and its help."""

from typing import Annotated

from crawler.cli.lazy import explain_output
from crawler.cli.options import At, Json, Why, argument


def explain(
    url: Annotated[str, argument("URL", "Any URL, tracked or not.")],
    why: Why = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say what is known about one URL: when it is due and why, how fresh it is; or why it is not crawled.

    With --why what it is worth at which price, what is believed about its changes, and who links to it.

    Examples:

        recrawl explain https://docs.example.com/guide/install.html
        recrawl explain https://docs.example.com/guide/install.html --why
    """
    return explain_output.explain(url, why=why, at=at, as_json=as_json)
