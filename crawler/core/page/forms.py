"""Login forms: found by the names of their fields, and filled in as a browser sends them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from crawler.core.http.urls import Url, normalize_url
from crawler.core.page.html import parse_html, resolve_base

MAX_CONTROLS = 200  # per form; further ones are ignored
_NEVER_SENT = frozenset({"button", "image", "reset", "file"})


@dataclass(frozen=True, slots=True)
class LoginForm:
    """A form with all fields of a login.

    action: the URL that the form is sent to, or None if the page names an invalid one.
    is_post: whether the form is sent with POST; with GET, its fields would appear in a URL.
    controls: the names and values that a browser would send if the user changed nothing.
    """

    action: Url | None
    is_post: bool
    controls: tuple[tuple[str, str], ...] = field(repr=False)

    def fill_fields(self, values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the fields to send, with these values replacing the original ones."""
        others = [(name, value) for name, value in self.controls if name not in values]
        return (*others, *values.items())


def find_login_form(body: bytes, content_type: str, *, url: Url, names: Collection[str]) -> LoginForm | None:
    """Return the first form of a page with fields of all these names, or None.

    url: the page's URL.
    Source: HTML standard, 4.10.22.4 (constructing the entry list), as far as logins need it.
    """
    if not all(name.encode() in body for name in names):  # avoid parsing most pages
        return None
    markup = parse_html(body, content_type)
    tree, base = markup.tree, resolve_base(markup.scan.base, url)
    for form in tree.css("form"):
        inputs = form.css("input[name],button[name]")[:MAX_CONTROLS]
        if set(names) <= {each.attributes.get("name") for each in inputs}:
            action = form.attributes.get("action")
            return LoginForm(
                action=normalize_url(action, base=base) if action else url,
                is_post=(form.attributes.get("method") or "").lower() == "post",
                controls=tuple(_list_sent_fields(inputs)),
            )
    return None


def _list_sent_fields(inputs: list[LexborNode]) -> list[tuple[str, str]]:
    """Return the fields that are sent if the form's first button is pressed."""
    fields: list[tuple[str, str]] = []
    is_pressed = False
    for each in inputs:
        attributes = each.attributes
        kind = (attributes.get("type") or ("submit" if each.tag == "button" else "text")).lower()
        is_choice = kind in {"checkbox", "radio"}
        is_off = "disabled" in attributes or (is_choice and "checked" not in attributes)
        if kind in _NEVER_SENT or is_off or (kind == "submit" and is_pressed):
            continue
        is_pressed = is_pressed or kind == "submit"
        fields.append((attributes.get("name") or "", attributes.get("value", "on" if is_choice else "") or ""))
    return fields
