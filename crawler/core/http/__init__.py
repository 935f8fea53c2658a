"""One request and its answer: URLs, answers, robots.txt, and back-off.

`normalise` makes the one spelling of a URL by which a page is known; Fetched, NotModified and Unreached are the
possible answers; `backoff` says how long a domain that refuses is left alone. The lowest room.
"""

from crawler.core.http.addresses import is_private, is_private_address
from crawler.core.http.backoff import backoff, http_date, retry_after
from crawler.core.http.credentials import (
    NO_ACCESS,
    Access,
    Cookies,
    Credentials,
    LoginReference,
    Reference,
    SecretSource,
    basic,
    credentials_in,
    headers_of,
    parse_auth,
    parse_header,
    parse_login,
    parse_proxy,
    parse_reference,
    unusable,
)
from crawler.core.http.expressions import Expression
from crawler.core.http.kept_headers import kept_headers
from crawler.core.http.response import (
    NO_VALIDATORS,
    USUAL_BOUNDS,
    Answer,
    Bounds,
    Fetched,
    Method,
    NotModified,
    Reason,
    Relay,
    Relayed,
    Unreached,
    Validators,
)
from crawler.core.http.robots import ALLOW_ALL, MAX_ROBOTS_BYTES, REFUSE_ALL, RobotsRules, parse_robots
from crawler.core.http.traffic import LOOKED_BACK, TrafficHour, far_from_usual
from crawler.core.http.urls import (
    MOST_LINKS,
    Authority,
    PageKey,
    Pattern,
    Refusal,
    Scope,
    Url,
    authority_of,
    from_user,
    host_of,
    key_of,
    normalise,
    normalise_all,
    path_and_query,
    pattern_of,
    public_suffix,
    refusals_of,
    registrable,
    scheme_of,
)
