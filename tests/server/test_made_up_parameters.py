"""Invalid parameters of pages, forms and the API are rejected with a reason and never cause a server error."""

import json
from itertools import count, cycle, product
from urllib.parse import quote

import pytest

from crawler.core.domain_settings import BY_NAME
from crawler.server.ui.fields import RULE_FIELDS
from tests.commands import Recrawl, Site
from tests.server.api.client import Client
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
    "/domains": ("sort", "name", "skip", "tag"),
    "/tag": ("name", "group"),
    "/domain": ("name", "tab"),
    "/domain?tab=changes": ("kind", "since", "before", "q"),
    "/domain?tab=pages": ("list", "sort", "q", "after"),
    "/domain?tab=freshness": ("range",),
    "/domain?tab=settings": ("group",),
    "/search": ("q",),
    "/changes": ("domain", "tag", "kind", "since", "before", "q"),
    "/page": ("url", "from", "to", "older", "view"),
    "/blocks": ("url", "block", "action", "text", "pattern", "version", "picked", "selector", "words"),
    "/values": ("url", "selector", "name", "unit", "mark", "pattern"),
    "/page/view": ("url", "from", "to"),
    "/page/pick": ("url",),
    "/feed.atom": ("domain", "prefix", "kind", "tag", "token"),
    "/screenshots": ("url", "from", "to"),
    "/screenshots/picture": ("url", "at", "against"),
    "/enter": ("code",),
    "/invitation": ("code",),
    "/actions": ("by", "words", "since", "before"),
}
FORMS = {
    "/domains/add": ("url", "budget_per_day", "target_freshness", "max_age", "bytes_per_day"),
    "/domains/import": ("text", "allow_private", "offline"),
    "/domains/set": ("name", "group", *BY_NAME),
    "/domains/remove": ("name", "confirmed"),
    "/domains/pause": ("name",),
    "/domains/resume": ("name",),
    "/refresh": ("name", "what", "back"),
    "/pages/act": ("name", "action", "url", "back"),
    "/changes/read": ("position", "back"),
    "/rules/new": ("name", *(field.name for field in RULE_FIELDS)),
    "/rules/add": ("url", "block", "action", "text", "pattern"),
    "/rules/remove": ("name", "pattern"),
    "/values/add": ("url", "selector", "name", "unit", "mark", "pattern"),
    "/values/remove": ("url", "name", "pattern"),
    "/try": ("url", "again"),
    "/domains/tag": ("domain", "tag", "action", "back"),
    "/tags/change": ("name", "tags", "was-tags", "back"),
    "/tags/set": ("name", "group", *BY_NAME),
    "/tags/remove": ("name",),
    **{f"/users/{action}": ("name", "role") for action in ("add", "role", "invite", "disable", "enable", "remove")},
    "/tokens/add": ("name", "scope", "days"),
    "/tokens/revoke": ("name",),
    "/account/password": ("current", "password", "again"),
    "/screenshots/take": ("url",),
}


@pytest.mark.soak
def test_invalid_parameters_of_pages_and_forms_are_rejected(crawled: Site, visitor: Visitor) -> None:
    usual = {"url": crawled.url, "name": crawled.name, "action": "boost"}
    answers: dict[tuple[str, ...], int] = {}
    for kind, value in VALUES.items():
        for path, names in PAGES.items():
            for name in names:
                query = "&".join(f"{each}={quote(text)}" for each, text in (usual | {name: value}).items())
                answers[kind, path, name] = visitor.get(f"{path}{'&' if '?' in path else '?'}{query}").status
        found = CSRF_TOKEN.search(visitor.get("/domains").text)
        assert found is not None
        for path, names in FORMS.items():
            for name in names:
                answers[kind, path, name] = visitor.post(path, usual | {name: value, "csrf_token": found[1]}).status

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}
    assert {status for (_, path, _), status in answers.items() if path in FORMS} <= {200, 303, 400}
    assert visitor.get("/").status == 200


# Values of fields in JSON bodies, in addition to the texts above.
ODD = {
    "null": None,
    "true": True,
    "below-zero": -1,
    "beyond-int4-number": 2**31,
    "beyond-int8-number": 10**30,
    "double": 1e308,
    "list": [],
    "list-of-null": [None],
    "list-of-nul": ["a\0b"],
    "object": {},
    "object-of-list": {"kind": [1]},
    "half-character": "\ud800",
    "list-of-half-characters": ["/\ud800", "/\ud800"],
}
REFUSED = {401, 403, 405, 413, 415, 429}  # answers that say nothing about the value


@pytest.mark.parametrize("step", [pytest.param(13, id="some"), pytest.param(1, id="all", marks=pytest.mark.soak)])
def test_invalid_parameters_and_fields_of_the_api_are_rejected(
    crawled: Site, recrawl: Recrawl, anonymous: Visitor, step: int
) -> None:
    """Try each value for each parameter and field, or each `step`th of these pairs."""
    scopes = ("--scope", "read,crawl,admin")
    tokens = cycle(recrawl("tokens", "add", str(n), *scopes).out.strip() for n in range(40))  # each has its rate limit
    client, answers, pairs = Client(anonymous), dict[tuple[str, ...], int](), count()
    settings = client.document["components"]["schemas"]["DomainChanges"]["properties"]["settings"]["properties"]

    def send(operation: str, kind: str, field: str, body: object, parameters: dict[str, object]) -> None:
        if next(pairs) % step:
            return
        client.token = next(tokens)
        answers[operation, field, kind] = client.send(operation, body, **parameters).status

    for name, operation in client.operations.items():
        examples = json.loads(json.dumps(operation.described).replace("docs.example.com", crawled.name))
        usual = {each["name"]: each["example"] for each in examples.get("parameters", ()) if "example" in each}
        content = examples.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = content.get("example", {}) | ({"offline": True} if name in {"add_domain", "import_urls"} else {})
        for parameter, kind in product(operation.parameters, VALUES):
            if parameter != "Idempotency-Key":
                send(name, kind, parameter, body, usual | {parameter: VALUES[kind]})
        schema = client.document["components"]["schemas"].get(content.get("schema", {}).get("$ref", "").split("/")[-1])
        for field, (kind, value) in product((schema or {}).get("properties", ()), (VALUES | ODD).items()):
            send(name, kind, field, body | {field: value}, usual)
    for key, (kind, value) in product(settings, ODD.items()):
        send("change_domain", kind, key, {"settings": {key: value}}, {"domain": crawled.name})

    bad = {asked: status for asked, status in answers.items() if status >= 500 or status in REFUSED}
    assert {asked: status for asked, status in bad.items() if (asked[0], status) != ("search", 503)} == {}  # no index
    assert len(answers) > 1300 // step
    client.token = next(tokens)
    assert client.call("get_domain", domain=crawled.name)["domain"] == crawled.name
