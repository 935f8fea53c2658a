"""The login page in front of Prefect contains no data and leads only to pages of Prefect."""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from crawler.runtime.environment import WATCH_PATH
from crawler.runtime.host_check import LOGIN_PATH, is_login_path, require_own_address, set_login_redirect

RUN = UUID("61ce57a0-f05d-476d-ada3-f8302f34427b")
AUTH = "recrawl:mill-secret"


def asked(path: str, *, method: str = "GET", host: str = "127.0.0.1:4200") -> tuple[int, dict[str, str], str]:
    """Return the response of the guarded application, which itself responds with 299."""
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [(b"host", host.encode())]}

    async def work() -> None:
        await require_own_address(app, port=4200, auth=AUTH)(scope, receive, send)

    asyncio.run(work())
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"].decode()


@pytest.mark.parametrize("path", [f"{WATCH_PATH}{RUN}", LOGIN_PATH], ids=["run", "login"])
def test_login_page_has_no_secret_and_one_script(path: str) -> None:
    status, headers, body = asked(path)
    assert status == 200
    assert "mill-secret" not in body + str(headers)
    (script,) = re.findall(r"<script>(.*?)</script>", body, re.DOTALL)
    known = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{known}'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")


@pytest.mark.parametrize(
    "path",
    [
        "/recrawl/run/",
        "/recrawl/run/..",
        "/recrawl/run//evil.example",
        f"/recrawl/run/{RUN}/",
        f"/recrawl/run/{RUN}/../../x",
        f"/recrawl/run/{{{RUN}}}",
        f"/recrawl/run/{str(RUN).upper()}",
        f"/x/recrawl/run/{RUN}",
        f"{LOGIN_PATH}/",
        f"{LOGIN_PATH}/../../api",
        str(RUN),
    ],
)
def test_other_paths_are_not_login_pages(path: str) -> None:
    assert not is_login_path(path)
    assert asked(path)[0] == 299


def test_login_page_needs_the_host_of_the_server() -> None:
    assert asked(f"{WATCH_PATH}{RUN}", host="evil.example")[0] == 403
    assert asked(f"{WATCH_PATH}{RUN}", method="POST")[0] == 299


def test_script_is_added_to_the_page_of_prefect_once(tmp_path: Path) -> None:
    index = tmp_path / "index.html"
    index.write_text('<html><head><script data-recrawl>"of another version"</script><title>x</title></head></html>')
    set_login_redirect(index, is_wanted=True)
    once = index.read_text()
    set_login_redirect(index, is_wanted=True)
    assert index.read_text() == once
    assert once.count("<script") == 1
    assert f'location.replace("{LOGIN_PATH}?redirect=' in once


def test_a_server_for_other_machines_has_the_page_without_the_script(tmp_path: Path) -> None:
    index, original = tmp_path / "index.html", "<html><head><title>x</title></head></html>"
    index.write_text(original)
    set_login_redirect(index, is_wanted=True)  # on loopback
    assert index.read_text() != original
    set_login_redirect(index, is_wanted=False)
    assert index.read_text() == original
