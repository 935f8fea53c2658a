"""Checks of Host and Origin in front of the Prefect server, and a login page that leads to any page of its UI.

Without the checks, pages of other sites could make the user's browser send requests to the server, by DNS rebinding.

Without a login, Prefect's own pages show errors and an advertisement before they ask for a password, and its login page
does not say where the password is. So a script in the page of Prefect's UI leads browsers without a password to the
login page here, which leads back to the page that was wanted. Only a page of the same origin can read from the
browser's storage whether there is a password.
"""

import re
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.runtime.environment import WATCH_PATH
from crawler.runtime.keys.home_keys import MAX_NONCE_CHARS, PROOF_PATH, compute_proof, list_own_hosts, list_own_origins

LOGIN_PATH = "/recrawl/login"
# The password stays in the browser's storage: it is in no address, log or history. An outdated one counts as missing.
SCRIPT = """
const query = new URLSearchParams(location.search), form = document.forms[0];
const problem = document.querySelector("[role=alert]");

function findTarget() {
  if (location.pathname.startsWith("/recrawl/run/")) return "/runs/flow-run/" + location.pathname.split("/").pop();
  try {
    const wanted = new URL(query.get("redirect"), location.origin);
    const isPage = wanted.origin === location.origin && !/^\\/(login|recrawl)\\b/.test(wanted.pathname);
    if (isPage && query.get("redirect")) return wanted.href;
  } catch {}
  return "/dashboard";
}

async function isAccepted(password) {
  const headers = {Authorization: "Basic " + password};
  return (await fetch("/api/admin/version", {headers, cache: "no-store"})).status !== 401;
}

async function start() {
  const stored = localStorage.getItem("prefect-password");
  if (stored && await isAccepted(stored).catch(() => true)) return location.replace(findTarget());
  form.hidden = false;
  form.auth.focus();
}

form.addEventListener("submit", async event => {
  event.preventDefault();
  try {
    const password = btoa(form.auth.value.trim());
    if (!await isAccepted(password)) throw new Error("it is not the auth string");
    localStorage.setItem("prefect-password", password);
    location.replace(findTarget());
  } catch (error) {
    problem.textContent = "Prefect did not accept this: " + error.message + ". Copy the line that recrawl ui prints.";
  }
});

start();
"""
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 26rem; margin: 15vh auto; padding: 0 1rem; }
input, button { font: inherit; width: 100%; padding: .5rem; margin: .25rem 0; box-sizing: border-box; }
"""
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Prefect · recrawl</title><style>{STYLE}</style></head>
<body><noscript><p>Prefect needs JavaScript.</p></noscript>
<form hidden><h1>Prefect</h1>
<p>Prefect shows the runs of the local stack. <code>recrawl ui</code> prints its auth string, and this browser keeps
it.</p>
<label>Auth string <input name="auth" type="password" autocomplete="current-password" required></label>
<button>Log in</button><p role="alert"></p></form>
<script>{SCRIPT}</script></body></html>
"""
# The script of Prefect's own page, before all others.
REDIRECT = f"""<script data-recrawl>
if (!localStorage.getItem("prefect-password") || location.pathname === "/login")
  location.replace("{LOGIN_PATH}?redirect=" + encodeURIComponent(location.pathname + location.search));
</script>"""


def _hash_source(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


POLICY = (
    f"default-src 'none'; script-src {_hash_source(SCRIPT)}; style-src {_hash_source(STYLE)}; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def set_login_redirect(index: Path, *, is_wanted: bool) -> None:
    """Add the script that leads to the login page to the page of Prefect's UI, or remove that of an earlier start.

    index: the copy of the page in RECRAWL_HOME.
    """
    text = index.read_text(encoding="utf-8")
    without = re.sub(r"<script data-recrawl>.*?</script>", "", text, flags=re.DOTALL)
    changed = without.replace("<head>", f"<head>{REDIRECT}", 1) if is_wanted else without
    if changed != text:
        index.write_text(changed, encoding="utf-8")


def require_own_address(app: ASGIApp, *, port: int, auth: str) -> ASGIApp:
    """Return the application behind a check of Host and Origin, with the login page and a proof of the auth string.

    For the proof, see home_keys.py. The login page needs no authentication, because it contains no data.
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
        elif scope["type"] == "http" and scope["method"] == "GET" and is_login_path(scope["path"]):
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


def is_login_path(path: str) -> bool:
    """Return whether a path is that of the login page: its own, or one that leads to a run."""
    run_id = path.removeprefix(WATCH_PATH)
    with suppress(ValueError):
        return path == LOGIN_PATH or (path.startswith(WATCH_PATH) and str(UUID(run_id)) == run_id)
    return False
