from collections.abc import Callable

import pytest

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.credentials import (
    SecretReference,
    SecretSource,
    build_headers,
    explain_unusable_secret,
    parse_auth,
    parse_credentials,
    parse_header,
    parse_login,
    parse_proxy,
)

LITERAL = "hunter2-s3cret"


def test_all_references_of_credentials_are_listed() -> None:
    found = parse_credentials(
        ["X-Key: env:DOCS_KEY"],
        "basic env:USER block:docs-password",
        "/login name=env:USER password=env:PASS",
        "http://proxy.test:3128 env:PROXY_USER env:PROXY_PASS",
    )
    secrets = {reference: f"<{reference}>" for reference in found.references}

    assert [str(reference) for reference in found.references] == [
        *("env:DOCS_KEY", "env:USER", "block:docs-password", "env:PASS", "env:PROXY_USER", "env:PROXY_PASS")
    ]
    assert build_headers(found, secrets) == (
        ("X-Key", "<env:DOCS_KEY>"),
        ("Authorization", "Basic PGVudjpVU0VSPjo8YmxvY2s6ZG9jcy1wYXNzd29yZD4="),
    )
    assert build_headers(
        parse_credentials([], "Bearer env:T", "", ""), {SecretReference(SecretSource.ENV, "T"): "x"}
    ) == (("Authorization", "Bearer x"),)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_header, f"X-Key: {LITERAL}"),
        (parse_header, "X-Key: env:RECRAWL_DATABASE_URL"),
        (parse_header, "X-Key: env:prefect_api_auth_string"),
        (parse_header, f"X-Key {LITERAL}"),
        (parse_header, f"X-Key: env:{LITERAL}!"),
        (parse_header, f"X Key: env:KEY {LITERAL}"),
        (parse_header, "Host: env:HOST"),
        (parse_header, "content-length: env:LENGTH"),
        (parse_auth, f"basic user {LITERAL}"),
        (parse_auth, f"basic env:USER {LITERAL}"),
        (parse_auth, f"bearer {LITERAL}"),
        (parse_auth, "digest env:USER env:PASS"),
        (parse_login, f"/login user=env:USER password={LITERAL}"),
        (parse_login, f"/login password {LITERAL}"),
        (parse_login, "/login"),
        (parse_login, "http://elsewhere.test/login user=env:USER"),
        (parse_login, "//elsewhere.test/login user=env:USER"),
        (parse_proxy, f"http://user:{LITERAL}@proxy.test:3128"),
        (parse_proxy, f"http://proxy.test:3128 user {LITERAL}"),
        (parse_proxy, "socks5://proxy.test:1080"),
        (parse_proxy, "http://proxy.test:99999"),
        (parse_proxy, "http://proxy.test"),
    ],
)
def test_literal_secret_is_rejected_without_repeating_it(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse(text)

    assert LITERAL not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_secrets_that_are_not_allowed_in_a_header_are_explained() -> None:
    assert [
        bool(explain_unusable_secret(secret)) for secret in ("", "a\r\nX-More: b", "\xe4", "a" * 9000, "a b:c=")
    ] == [*(True, True, True, True, False)]


def test_invalid_stored_settings_are_refusals_not_exceptions() -> None:
    stored = DomainSettings(auth="basic nothing", hours="Sun 22-25", headers=("X-Key: env:KEY", "nonsense"))

    assert len(stored.problems) == 3
