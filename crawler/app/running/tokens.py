"""Access tokens of the HTTP API, and its responses that are kept for repeated requests."""

from crawler.runtime.kept_responses import KeptResponse, KeptResponses
from crawler.runtime.keys.api_tokens import (
    ApiToken,
    TokenScope,
    create_token,
    find_token,
    list_tokens,
    parse_scopes,
    revoke_token,
)
