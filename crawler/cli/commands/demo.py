"""recrawl demo: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import Json


def demo(
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="Virtual days that pass.")] = 30,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running, to look at.")] = False,
    as_json: Json = False,
) -> int:
    """Let a small site live for a month on this machine, crawl it day by day, and compare with the truth.

    Examples:

        recrawl demo
        recrawl demo --days 7 --keep
    """
    from crawler.cli.actions.crawls import demo

    return demo.demo(days=days, keep=keep, as_json=as_json)
