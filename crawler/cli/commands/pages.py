"""recrawl pages: its options and its help."""

from crawler.cli.options import At, DomainName, Json, Top


def pages(domain: DomainName, top: Top = 20, at: At = None, as_json: Json = False) -> int:
    """List a domain's pages, the most important first.

    Examples:

        recrawl pages docs.example.com
        recrawl pages docs.example.com --top 1000 --json
    """
    from crawler.cli.actions import pages

    return pages.pages(domain, top=top, at=at, as_json=as_json)
