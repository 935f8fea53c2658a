"""Access tokens of the HTTP API."""

from crawler.runtime.keys.api_tokens import ApiToken, create_token, find_token, list_tokens, revoke_token
