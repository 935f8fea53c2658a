"""Checks of Host and Origin in front of the Prefect server, and a redirect page to its runs.

Without the checks, pages of other sites could make the user's browser send requests to the server, by DNS rebinding.

The redirect page opens a run with or without an earlier login to Prefect. Prefect's own page of a run shows an error
without a login, and its login page always asks for the password. Only a page of the same origin can read from the
browser's storage whether there is a password.
"""

from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from uuid import UUID

from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.runtime.environment import WATCH_PATH
from crawler.runtime.keys.home_keys import MAX_NONCE_CHARS, PROOF_PATH, compute_proof, list_own_hosts, list_own_origins

# The password stays in the browser's storage: it is in no address, log or history. An outdated one counts as missing.
SCRIPT = """
const run = "/runs/flow-run/" + location.pathname.split("/").pop();
const login = "/login?redirect=" + encodeURIComponent(run);
const password = localStorage.getItem("prefect-password");
fetch("/api/admin/version", {headers: password ? {Authorization: "Basic " + password} : {}, cache: "no-store"})
  .then(response => location.replace(response.status === 401 ? login : run), () => location.replace(run));
"""
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Crawl run · recrawl</title></head>
<body><p>Prefect shows this run and needs JavaScript. <code>recrawl ui</code> prints the password of its login.</p>
<script>{SCRIPT}</script></body></html>
"""
POLICY = (
    f"default-src 'none'; script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def require_own_address(app: ASGIApp, *, port: int, auth: str) -> ASGIApp:
    """Return the application behind a check of Host and Origin, with the redirect page and a proof of the auth string.

    For the proof, see home_keys.py. The redirect page needs no authentication, because it contains no data.
    """
    hosts = {host.encode() for host in list_own_hosts(port)}
    origins = {origin.encode() for origin in list_own_origins(port)}

    async def check_request(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await app(scope, receive, send)
        elif [value.lower() for value in _get_header_values(scope, b"host")] not in [[host] for host in hosts]:
            await _reject(scope, receive, send, f"unknown Host header: this server is {list_own_origins(port)[0]}")
        elif not set(_get_header_values(scope, b"origin")) <= origins:
            await _reject(scope, receive, send, "requests from pages of other sites are not allowed")
        elif scope["type"] == "http" and scope["path"].startswith(f"{PROOF_PATH}/"):
            nonce = scope["path"].removeprefix(f"{PROOF_PATH}/")[:MAX_NONCE_CHARS]
            await PlainTextResponse(compute_proof(auth, port=port, nonce=nonce))(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and is_watch_path(scope["path"]):
            await HTMLResponse(PAGE, headers=HEADERS)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return check_request


def _get_header_values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


async def _reject(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    if scope["type"] == "websocket":
        # Policy violation (RFC 6455); before the connection is accepted, this becomes a 403.
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
    else:
        await PlainTextResponse(reason, 403)(scope, receive, send)


def is_watch_path(path: str) -> bool:
    """Return whether a path is a redirect page to a run."""
    run_id = path.removeprefix(WATCH_PATH)
    with suppress(ValueError):
        return path.startswith(WATCH_PATH) and str(UUID(run_id)) == run_id
    return False
