"""The table of all endpoints: method, path, operation, and the scope that its token needs.

The permissions of each scope are in crawler/app/actor.py, with those of the roles of users.
"""

from dataclasses import dataclass

from crawler.app.running.tokens import TokenScope

READ, CRAWL, ADMIN = TokenScope.READ, TokenScope.CRAWL, TokenScope.ADMIN


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint. operation: the method of WritingApi and the operation id in OpenAPI.

    location: the path of what it creates, with fields of the result in braces.
    is_slow: it may send requests to other servers or delete much, and has a longer time limit.
    has_effect: a repeated request would do something again, and its response may be kept: it contains no secret.
    """

    method: str
    path: str
    operation: str
    scope: TokenScope = READ
    status: int = 200
    location: str = ""
    is_slow: bool = False
    has_effect: bool = True

    @property
    def is_kept(self) -> bool:
        """Return whether its response is kept for a repeated request with the same idempotency key."""
        return self.method == "POST" and self.has_effect


ENDPOINTS = (
    Endpoint("GET", "/domains", "list_domains"),
    Endpoint("POST", "/domains", "add_domain", ADMIN, 201, "/domains/{domain}", is_slow=True),
    Endpoint("GET", "/domains/{domain}", "get_domain"),
    Endpoint("PATCH", "/domains/{domain}", "change_domain", ADMIN),
    Endpoint("DELETE", "/domains/{domain}", "remove_domain", ADMIN, 204, is_slow=True),
    Endpoint("GET", "/domains/{domain}/rules", "list_rules"),
    Endpoint("POST", "/domains/{domain}/rules", "add_rule", ADMIN),
    Endpoint("DELETE", "/domains/{domain}/rules", "remove_rule", ADMIN, 204),
    Endpoint("GET", "/domains/{domain}/pages", "list_domain_pages"),
    Endpoint("POST", "/domains/{domain}/page-actions", "act_on_pages", ADMIN),
    Endpoint("POST", "/domains/{domain}/clock-resets", "reset_clock", ADMIN),
    Endpoint("GET", "/tags", "list_tags"),
    Endpoint("GET", "/tags/{tag}", "get_tag"),
    Endpoint("PATCH", "/tags/{tag}", "change_tag", ADMIN),
    Endpoint("DELETE", "/tags/{tag}", "remove_tag", ADMIN, 204),
    Endpoint("POST", "/imports", "import_urls", ADMIN, is_slow=True),
    Endpoint("POST", "/recrawls", "recrawl", CRAWL, 202, is_slow=True),
    Endpoint("POST", "/hints", "add_hints", CRAWL, 202),
    Endpoint("POST", "/trials", "try_page", ADMIN, is_slow=True, has_effect=False),
    Endpoint("POST", "/screenshots", "take_screenshot", ADMIN, is_slow=True),
    Endpoint("GET", "/screenshots", "list_screenshots"),
    Endpoint("GET", "/screenshots/picture", "get_picture"),
    Endpoint("GET", "/changes", "list_changes"),
    Endpoint("GET", "/pages", "list_pages"),
    Endpoint("GET", "/text", "get_text"),
    Endpoint("GET", "/versions", "list_versions"),
    Endpoint("GET", "/diff", "compare_versions"),
    Endpoint("GET", "/values", "list_values"),
    Endpoint("GET", "/explanation", "explain_page"),
    Endpoint("GET", "/freshness", "report_freshness"),
    Endpoint("GET", "/search", "search"),
    Endpoint("GET", "/subscriptions", "list_subscriptions"),
    Endpoint("POST", "/subscriptions", "add_subscription", ADMIN, 201, "/subscriptions/{number}"),
    Endpoint("GET", "/subscriptions/{number}", "get_subscription"),
    Endpoint("PATCH", "/subscriptions/{number}", "change_subscription", ADMIN),
    Endpoint("DELETE", "/subscriptions/{number}", "remove_subscription", ADMIN, 204),
    Endpoint("POST", "/subscriptions/{number}/tests", "test_subscription", ADMIN, is_slow=True),
    Endpoint("GET", "/dead-letters", "list_dead_letters"),
    Endpoint("DELETE", "/dead-letters/{number}", "discard_dead_letter", ADMIN, 204),
    Endpoint("POST", "/redeliveries", "redeliver", ADMIN, 202),
    Endpoint("GET", "/users", "list_users", ADMIN),
    Endpoint("POST", "/users", "add_user", ADMIN, 201, "/users/{name}", has_effect=False),
    Endpoint("PATCH", "/users/{name}", "change_user", ADMIN),
    Endpoint("DELETE", "/users/{name}", "remove_user", ADMIN, 204),
    Endpoint("POST", "/users/{name}/invitations", "invite_user", ADMIN, 201, has_effect=False),
    Endpoint("GET", "/actions", "list_actions", ADMIN),
)
