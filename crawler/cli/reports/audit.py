"""recrawl audit: its options and its help."""

from crawler.cli.options import At, DomainOrAll, Json


def audit(
    domain: DomainOrAll = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Hold what is reported to what looks found, and draw pages by chance for the next crawl to look at.

    For once a day where no stack runs that does it; all through a UTC day it draws the same pages. Exit code 1 where
    the freshness that is reported, or what was expected of looks, is off by more than chance explains.

    Examples:

        recrawl audit
        recrawl audit docs.example.com
        recrawl audit --json
    """
    from crawler.cli.reports import audit_output

    return audit_output.audit(domain, at=at, as_json=as_json)
