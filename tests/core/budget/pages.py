"""Page arrays with defaults, so that a test sets only the columns it needs."""

from crawler.core.budget.page_arrays import Flags, Groups, PageArrays, build_page_arrays
from crawler.core.freshness.gamma import Numbers


def pages_of(a: Numbers, b: Numbers, weight: Numbers, **others: Numbers | Groups | Flags) -> PageArrays:
    """Return pages of one domain with one request per visit and intervals of ten minutes to 180 days."""
    usual: dict[str, Numbers | Groups | Flags] = {
        "requests": 1.0,
        "received_bytes": 0.0,
        "min_interval": 1 / 144,
        "max_interval": 180.0,
        "domain": 0,
        "stands_for": 1.0,
    }
    usual |= {"is_ruled": False, "recall": 0.0, "ratio": 0.0, "signals_per_day": 0.0}
    return build_page_arrays(a=a, b=b, weight=weight, **{"importance": weight, **usual, **others})
