"""The way to a run in Prefect's own pages, for who has logged in there and for who has not.

Prefect's page of a run shows an error to whoever has not told it the auth string yet, and its login asks everybody
anew. Only a page of the same origin can know which is right: the browser keeps the string there, and sends it nowhere
else.
"""

from base64 import b64encode
from hashlib import sha256
from uuid import UUID

WATCH_PATH = "/recrawl/run/"

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
HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


def watch_path(run: UUID) -> str:
    """The address of the way to a run, on the server that `own_address_only` guards."""
    return f"{WATCH_PATH}{run}"


def is_watch_path(path: str) -> bool:
    """Whether that is the way to a run, and to nothing else."""
    given = path.removeprefix(WATCH_PATH)
    try:
        return path.startswith(WATCH_PATH) and str(UUID(given)) == given
    except ValueError:
        return False
