"""Invalid parameters of pages, forms and the API are rejected with a reason and never cause a server error."""

import json
from urllib.parse import quote

import pytest

from tests.commands import Recrawl, Site
from tests.server.conftest import CSRF_TOKEN, Visitor

VALUES = {
    "nul": "a\0b",
    "beyond-int4": "9999999999",
    "beyond-int8": "9" * 30,
    "negative": "-9999999999",
    "huge-place": f"1_{'9' * 30}",
    "place-before-time": "-62135596800_-1",
    "place-after-time": "1e308_1",
    "early": "0001-01-01T00:00:00+14:00",
    "late": "9999-12-31T23:59:59-14:00",
    "brackets": "http://[::1",
    "port": "http://a:99999999/",
    "expression": "re:(",
    "quote": "'\"(*) AND",
    "long": "x" * 8000,
    "digits-of-others": "\u0661\u00b2",
}
PAGES = {
    "/": ("after",),
    "/domain": ("name",),
    "/changes": ("domain", "kind", "since", "before"),
    "/page": ("url", "from", "to", "older", "view"),
    "/blocks": ("url", "block", "action", "text", "pattern"),
    "/feed.atom": ("domain", "prefix", "kind", "token"),
    "/enter": ("code",),
}
FORMS = {
    "/domains/add": ("url", "budget_per_day", "target_freshness", "max_age", "bytes_per_day"),
    "/domains/set": ("name", "budget_per_day", "target_freshness", "max_age", "bytes_per_day"),
    "/domains/set-one": ("name", "setting", "value"),
    "/domains/remove": ("name", "confirmed"),
    "/domains/pause": ("name",),
    "/domains/resume": ("name",),
    "/refresh": ("name", "what", "back"),
    "/rules/add": ("url", "block", "action", "text", "pattern"),
    "/rules/remove": ("name", "pattern"),
    "/try": ("url", "again"),
}


@pytest.mark.soak
def test_invalid_parameters_of_pages_and_forms_are_rejected(crawled: Site, visitor: Visitor) -> None:
    usual = {"url": crawled.url, "name": crawled.name, "setting": "delay"}
    answers: dict[tuple[str, ...], int] = {}
    for kind, value in VALUES.items():
        for path, names in PAGES.items():
            for name in names:
                query = "&".join(f"{each}={quote(text)}" for each, text in (usual | {name: value}).items())
                answers[kind, path, name] = visitor.get(f"{path}?{query}").status
        found = CSRF_TOKEN.search(visitor.get("/").text)
        assert found is not None
        for path, names in FORMS.items():
            for name in names:
                answers[kind, path, name] = visitor.post(path, usual | {name: value, "csrf_token": found[1]}).status

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}
    assert {status for (_, path, _), status in answers.items() if path in FORMS} <= {200, 303, 400}
    assert visitor.get("/").status == 200


def test_invalid_parameters_of_the_api_are_rejected(crawled: Site, recrawl: Recrawl, anonymous: Visitor) -> None:
    answers = {}
    usual = {"url": crawled.url, "domain": crawled.name, "q": "flour"}
    described = json.loads(anonymous.get("/api/v1/openapi.json").text)["paths"]
    for kind, value in VALUES.items():
        token = recrawl("tokens", "add", kind).out.strip()
        for path, methods in described.items():
            parameters = methods["get"].get("parameters", [])
            needed = {each["name"]: usual[each["name"]] for each in parameters if each["required"]}
            for name in (each["name"] for each in parameters):
                query = "&".join(f"{each}={quote(text)}" for each, text in (needed | {name: value}).items())
                seen = anonymous.get(f"{path}?{query}", Authorization=f"Bearer {token}")
                answers[kind, path, name] = seen.status

    assert {asked: status for asked, status in answers.items() if status in {401, 404, 429, 500}} == {}
