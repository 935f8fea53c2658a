"""A client that a published generator writes from the OpenAPI document does the tasks of a user.

The generator is no dependency of the project: put `openapi-python-client` on the PATH, for example with
`uv tool install openapi-python-client`.
"""

import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crawler.runtime.machine import get_search_file
from tests.cli.test_notify import Hook, hook
from tests.commands import Recrawl, Site
from tests.patience import PATIENCE_S
from tests.server.api.client import Client
from tests.server.api.test_every_endpoint import client, write_pages

__all__ = ["client", "hook"]
PACKAGE = "generated_client"
SITES = 20


def generate(document: str, folder: Path) -> str:
    """Write the client, and return what the generator complains about."""
    program = shutil.which("openapi-python-client")
    if program is None:
        pytest.skip("openapi-python-client is not on the PATH")
    (folder / "openapi.json").write_text(document)
    options = ["--path", str(folder / "openapi.json"), "--output-path", str(folder / PACKAGE), "--meta", "none"]
    done = subprocess.run(
        [program, "generate", *options], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    said = f"{done.stdout}{done.stderr}".partition("Skipping Integration")[0]  # it wants a formatter
    return said.replace("Generating client", "").replace(f"Generating {folder / PACKAGE}", "").strip()


@pytest.fixture
def call(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that calls an operation with the generated client."""
    assert generate(client.visitor.get("/api/v1/openapi.json").text, tmp_path) == ""
    monkeypatch.syspath_prepend(str(tmp_path))
    address, token = client.visitor.address, client.token
    generated = import_module(PACKAGE).AuthenticatedClient(base_url=address, token=token)

    def send(operation: str, **given: Any) -> Any:
        endpoint: Callable[..., Any] = import_module(f"{PACKAGE}.api.default.{operation}").sync_detailed
        response = endpoint(client=generated, **given)
        assert 200 <= response.status_code < 300, response.content
        return response.parsed

    return send


@pytest.mark.soak
def test_generated_client_does_ten_tasks(
    site: Site, recrawl: Recrawl, hook: Hook, call: Callable[..., Any], tmp_path: Path
) -> None:
    models = import_module(f"{PACKAGE}.models")

    # Add 20 sites from a list.
    names = [f"site{n}.test" for n in range(SITES - 1)]
    text = "\n".join([*names, site.url])
    local = models.ImportBodySettings.from_dict({"allow_private": True, "delay_seconds": 0})
    imported = call("import_urls", body=models.ImportBody(text=text, settings=local, offline=True))
    assert (len(imported.registered), imported.failed.additional_properties) == (SITES, {})
    first = call("list_domains", limit=15)
    assert len(first.items) + len(call("list_domains", after=first.next_, limit=15).items) == SITES

    # Boost a section, change a budget, and ignore a clock.
    rule = models.RuleBody(pattern="/one", weight=4.0, ignore=[".clock"])
    assert call("add_rule", domain=site.name, body=rule).ignore == [".clock"]
    changes = models.DomainChangesSettings.from_dict({"budget_per_day": 700})
    changed = call("change_domain", domain=site.name, body=models.DomainChanges(settings=changes))
    assert changed.settings.budget_per_day == 700

    # Add a notification and test it.
    fields = {"domain": site.name, "kinds": [models.EventKind.CHANGED], "allow_private": True}
    number = call("add_subscription", body=models.SubscriptionBody(target=hook.url, **fields)).number
    assert call("test_subscription", number=number).is_sent

    # Find what changed about a word, and see the difference.
    write_pages(site)
    assert recrawl("crawl", site.name).code == 0
    write_pages(site, "Friday")
    assert call("recrawl", body=models.RecrawlBody(target=f"{site.url}*")).pages == 3
    hook.status = 400
    assert recrawl("crawl", site.name).code == 0
    feed = call("list_changes", kind="changed")
    (change,) = [each for each in feed.items if any("Friday" in (block.after or "") for block in each.blocks)]
    diff = call("compare_versions", url_query=change.url, after=change.version)
    runs = [run for hunk in diff.hunks for block in hunk.blocks if block.is_news for run in block.runs]
    assert [run.text for run in runs if run.kind is not models.RunKind.KEPT] == ["Monday", "Friday"]

    # Send a dead letter again.
    for day in (1, 9):
        recrawl("notify", "run", "--at", f"2036-01-0{day}T00:00Z")
    (letter,) = call("list_dead_letters").items
    body = models.RedeliveryBody(dead_letters=[letter.number])
    assert call("redeliver", body=body).dead_letters == 1

    # See why a page is not fetched; pause and resume its domain.
    assert call("change_domain", domain=site.name, body=models.DomainChanges(paused=True)).wait.reason == "paused"
    assert call("explain_page", url_query=f"{site.url}one")["tracked"]
    assert call("change_domain", domain=site.name, body=models.DomainChanges(paused=False)).wait is not None
    listed = call("list_domain_pages", domain=site.name, sort=models.PageOrder.URL, q="one")
    assert [each.url for each in listed.items] == [f"{site.url}one"]
    pages = models.PageActionBody(action=models.PageAction.EXCLUDE, urls=[f"{site.url}one"])
    assert call("act_on_pages", domain=site.name, body=pages).pages == 1

    # Find a page by its text.
    assert recrawl("sync", str(get_search_file(tmp_path))).code == 0
    assert [each.url for each in call("search", q="linen bag").items] == [f"{site.url}two"]
    call("remove_domain", domain=names[0])
