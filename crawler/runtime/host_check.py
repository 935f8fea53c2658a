"""Who may ask the Prefect server at all: pages of its own, and programs that mean it, by its own address.

A page of any site could otherwise have the user's browser ask it, under a name that leads to this machine.

Here is also the way to a run, for who has logged in at Prefect's own pages and for who has not. Prefect's page of a run
shows an error to whoever has not told it the auth string yet, and its login asks everybody anew. Only a page of the
same origin can know which is right: the browser keeps the string there, and sends it nowhere else.
"""

from base64 import b64encode
from hashlib import sha256
from uuid import UUID

from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.runtime.environment import WATCH_PATH
from crawler.runtime.keys.home_keys import MAX_NONCE_CHARS, PROOF_PATH, compute_proof, list_own_hosts, list_own_origins

POLICY_VIOLATION = 1008  # RFC 6455; before a connection is accepted, it becomes a 403

# The string stays in the browser's storage: it is in no address, no log and no history. An old one counts as none.
SCRIPT = """
const there = "/runs/flow-run/" + location.pathname.split("/").pop();
const login = "/login?redirect=" + encodeURIComponent(there);
const word = localStorage.getItem("prefect-password");
fetch("/api/admin/version", {headers: word ? {Authorization: "Basic " + word} : {}, cache: "no-store"})
  .then(answer => location.replace(answer.status === 401 ? login : there), () => location.replace(there));
"""
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A run · recrawl</title></head>
<body><p>Prefect shows this run; its pages need JavaScript. <code>recrawl ui</code> tells the word that it asks for.</p>
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
    """The application behind a check of Host and Origin; who asks is given the proof that it knows the auth string.

    The way to a run is shown to anybody: it holds nothing.
    """
    hosts = {host.encode() for host in list_own_hosts(port)}
    origins = {origin.encode() for origin in list_own_origins(port)}

    async def check_request(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await app(scope, receive, send)
        elif [value.lower() for value in _get_header_values(scope, b"host")] not in [[host] for host in hosts]:
            await _refuse(scope, receive, send, f"this is {list_own_origins(port)[0]}")
        elif not set(_get_header_values(scope, b"origin")) <= origins:
            await _refuse(scope, receive, send, "only its own pages may ask")
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


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
    else:
        await PlainTextResponse(reason, 403)(scope, receive, send)


def is_watch_path(path: str) -> bool:
    """Whether that is the way to a run, and to nothing else."""
    run_id = path.removeprefix(WATCH_PATH)
    try:
        return path.startswith(WATCH_PATH) and str(UUID(run_id)) == run_id
    except ValueError:
        return False
