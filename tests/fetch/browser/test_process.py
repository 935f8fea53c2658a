"""The browser's processes: their environment, sandbox, memory, and the effects of their end."""

import asyncio
import contextlib
import logging
import os
import subprocess
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from crawler.core.http.response import BrowserRequest, BrowserResponse
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import NotRendered, Rendered, RenderFailure, RenderOutcome
from crawler.fetch.browser import Browser, RenderLimits
from crawler.fetch.browser.process import PASSED_VARIABLES
from tests.patience import PATIENCE_S

SITE = "https://site.example"
NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "true")


def has_namespaces() -> bool:
    return subprocess.run(NAMESPACE, check=False, capture_output=True).returncode == 0


def status_of(process: psutil.Process) -> str:
    return Path(f"/proc/{process.pid}/status").read_text()


async def ordinary(_: BrowserRequest) -> BrowserResponse:
    return html("<p>x")


def html(page: str) -> BrowserResponse:
    return BrowserResponse(200, (("Content-Type", "text/html"),), page.encode())


def processes() -> list[psutil.Process]:
    """Return the drivers and browsers of this process."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if "run-driver" in child.cmdline():
                found += [child, *child.children(recursive=True)]
    return found


def is_renderer(process: psutil.Process) -> bool:
    """Return whether a process is a renderer of the browser that still runs."""
    with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
        return "--type=renderer" in " ".join(process.cmdline())
    return False


def environments(found: Iterable[psutil.Process]) -> list[dict[str, str]]:
    """Return the readable environments: only root can read that of a process in its sandbox."""
    read = []
    for each in found:
        try:
            read.append(each.environ())
        except psutil.Error:
            continue
    return read


async def test_driver_and_browser_get_no_secrets_of_the_environment(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "hunter2")
    async with browser, browser.open_tab(ordinary) as tab:
        await tab.render(Url(f"{SITE}/"))
        seen = environments(processes())

    assert len(seen) > 1
    assert set(seen[0]) <= PASSED_VARIABLES  # of the driver; a renderer writes its command line over its environment
    assert not any("hunter2" in value for each in seen for value in each.values())


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary account may have a sandbox of another kind")
@pytest.mark.skipif(not has_namespaces(), reason="this machine has no user namespaces")
async def test_pages_are_in_a_sandbox_even_if_root_starts_the_browser(
    browser: Browser, told: list[logging.LogRecord]
) -> None:
    statuses: list[str] = []

    async def answer(request: BrowserRequest) -> BrowserResponse:
        if request.url.endswith("/fetched"):
            statuses.extend(status_of(each) for each in processes() if is_renderer(each))
        return html("<p>x<script>fetch('/fetched')</script>")

    async with browser, browser.open_tab(answer) as tab:
        await tab.render(Url(f"{SITE}/"))

    assert statuses
    for status in statuses:
        assert "\nSeccomp:\t2\n" in status  # seccomp filter
        assert "\nCapEff:\t0000000000000000\n" in status
    assert "browser.no_sandbox" not in [each.getMessage() for each in told]


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs unshare for the sandbox")
async def test_a_browser_without_a_sandbox_is_logged_once(
    browser: Browser, told: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # makes unshare unavailable
    browser.limits = RenderLimits(timeout=timedelta(seconds=PATIENCE_S), max_renders=1)  # a browser for each page
    async with browser, browser.open_tab(ordinary) as tab:
        outcomes = [await tab.render(Url(f"{SITE}/{n}")) for n in range(2)]

    assert all(isinstance(each, Rendered) for each in outcomes)
    assert [each.getMessage() for each in told].count("browser.no_sandbox") == 1


# As many bytes as one process may use, repeatedly.
HOSTILE = """<p>x<script>
const kept = [];
const fill = () => { try { for (;;) kept.push(new Uint8Array(4e6).fill(kept.length)); } catch {} };
fill();
setInterval(fill, 10);
</script>"""


def unique_memory(found: Iterable[psutil.Process]) -> int:
    """Return the bytes of processes together; shared memory is divided among them."""
    total = 0
    for each in found:
        try:
            total += each.memory_full_info().pss
        except psutil.Error:
            continue
    return total


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_four_hostile_tabs_stay_within_the_memory_limit_and_affect_no_other_page(browser: Browser) -> None:
    browser.limits = RenderLimits(timeout=timedelta(seconds=20), max_settle_time=timedelta(seconds=2))
    peak_bytes = 0

    async def answer(request: BrowserRequest) -> BrowserResponse:
        return html("<p>well" if request.url.endswith("/well") else HOSTILE)

    async def render(n: int) -> tuple[RenderOutcome, RenderOutcome]:
        async with browser.open_tab(answer) as tab:
            return await tab.render(Url(f"{SITE}/{n}")), await tab.render(Url(f"{SITE}/well"))

    async with browser:
        rendering = asyncio.gather(*map(render, range(browser.limits.max_tabs)))
        while not rendering.done():
            peak_bytes = max(peak_bytes, await asyncio.to_thread(lambda: unique_memory(processes())))
            await asyncio.sleep(0.05)
        outcomes = await rendering

    assert peak_bytes < 1.25 * browser.limits.max_total_bytes
    assert all(isinstance(after, Rendered) for _, after in outcomes)
    findings = [first for first, _ in outcomes if isinstance(first, NotRendered)]
    assert findings
    assert {each.reason for each in findings} <= {RenderFailure.CRASHED, RenderFailure.HUNG}


@pytest.mark.parametrize("at", [pytest.param("start", marks=pytest.mark.soak), "request"])
async def test_a_killed_driver_costs_a_restart_and_no_page(browser: Browser, at: str) -> None:
    killed: list[int] = []

    def kill_driver() -> bool:
        for each in psutil.Process().children():
            if not killed and "run-driver" in each.cmdline():
                killed.append(each.pid)
                each.kill()
        return bool(killed)

    async def answer(_: BrowserRequest) -> BrowserResponse:
        if at == "request":
            kill_driver()
        return html("<p>well")

    async with browser, browser.open_tab(answer) as tab:
        rendering = asyncio.create_task(tab.render(Url(f"{SITE}/")))
        while at == "start" and not kill_driver():
            await asyncio.sleep(0.001)
        outcome = await rendering

    assert killed
    assert isinstance(outcome, Rendered)
