"""What each page and form of the web UI needs: the permission that the role of its user must include.

Scopes of tokens map to the same permissions (crawler/app/actor.py); crawler/server/api/table.py has the endpoints.
"""

from crawler.app.actor import Permission

DEFAULTS = {"GET": Permission.READ, "POST": Permission.CHANGE}
# What needs something else. A path also stands for the paths below it.
NEEDS = {
    "/account": Permission.READ,  # the password of the user
    "/logout": Permission.READ,
    "/changes/read": Permission.READ,  # a mark in the user's browser
    "/refresh": Permission.CRAWL,
    "/try": Permission.MANAGE,  # sends requests, with the secrets of the domain
    "/notifications/edit": Permission.CHANGE,
    "/users": Permission.MANAGE,
    "/tokens": Permission.MANAGE,
    "/actions": Permission.MANAGE,
}


def get_need(path: str, method: str = "POST") -> Permission:
    """Return the permission that a page or a form needs."""
    needs = (need for prefix, need in NEEDS.items() if f"{path}/".startswith(f"{prefix}/"))
    return next(needs, DEFAULTS[method])
