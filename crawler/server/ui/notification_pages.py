"""The pages of notifications: the subscriptions, and the form, the state and the dead letters of each."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from crawler.app.actor import Permission
from crawler.app.database import AppDatabase
from crawler.app.delivery import notifications
from crawler.app.delivery.notifications import EventKind, SubscriptionRequest
from crawler.clock import Clock
from crawler.errors import BadInput, CrawlerError, ReceiverNotAllowed
from crawler.format.kinds import NEWS
from crawler.format.subscriptions import format_selection
from crawler.format.values import format_count, format_delivered, sanitize_text
from crawler.server.identity import Identity
from crawler.server.ui.actions import Action, Form, Outcome, parse_number
from crawler.server.ui.fields import Field, Typed
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.render import render
from crawler.server.ui.templating import capitalize_first
from crawler.server.ui.web import PageServer, respond_html

MAX_SHOWN = 15  # subscriptions on one page of the list
MAX_LETTERS = 15  # dead letters on the page of a subscription
MAX_DELIVERY = timedelta(seconds=10)  # no message is started after this, so that the page does not wait for long
CONDITIONS = ("", "appears", "goes", "below", "above", "differs")
FLAG = ("no", "yes")
# The fields of the form, in groups. Their names are those of BadInput.
GROUPS: dict[str, tuple[Field, ...]] = {
    "Receiver": (
        Field(
            *("target", "Target"),
            "A webhook or an Apprise address. If it has a password or a token, name the variable or the Prefect secret "
            "block that holds it: env:NAME or block:NAME.",
            example="https://ci.example.com/hook",
        ),
        Field("secret", "Signing key", "Sign webhooks with the key in env:NAME or block:NAME.", example="env:HOOK_KEY"),
        Field(
            *("allow_private", "Private addresses", "Allow a receiver on this machine or in a private network."),
            choices=FLAG,
        ),
    ),
    "Pages": (
        Field("domain", "Domain", "Empty for all.", example="docs.example.com"),
        Field("tag", "Tag", "Domains with this tag; empty for all.", example="news"),
        Field("page", "One page", "Its URL."),
        Field("prefix", "URL prefix", "Pages whose URL starts with this.", example="https://docs.example.com/guide/"),
        Field("pattern", "Pattern", "Pages that match, such as /docs/, *.html$ or re:/20../.", example="/docs/"),
    ),
    "Changes": (
        Field(
            *("min_magnitude", "Least change", "Share of a page that must change. Changes of unknown size are sent."),
            example="5%",
        ),
    ),
    "Condition": (
        Field(
            *("condition", "Condition"),
            "Notify when it becomes true. appears, goes: a text. below, above: a number. differs: by a share.",
            choices=CONDITIONS,
        ),
        Field("value", "Text or number", "Such as 40, or 5% for differs. A text may be re: and a regular expression."),
        Field(
            *("selector", "Element", "CSS selector, or xpath: and an XPath, of the element that the condition checks."),
            example=".price",
        ),
        Field(
            *("value_name", "Value", "Or the name of a value that a rule reads: only its changes are sent."),
            example="price",
        ),
    ),
    "Digest and quiet hours": (
        Field(
            *("digest", "Digest", "One message per period: 1h, daily, daily@07:30 or weekly@fri-17:30."),
            example="daily@07:30",
        ),
        Field(
            "quiet_hours", "Quiet hours", "Nothing is sent in these hours, and one message afterwards.", example="22-07"
        ),
        Field(
            "time_zone", "Time zone", "Of both. Empty for that of the domain's crawl hours, else UTC.", example="UTC"
        ),
    ),
}
FOLDED = {"Condition", "Digest and quiet hours"}  # groups that are closed while they are empty
NAMES = [each.name for group in GROUPS.values() for each in group]
# The fields whose typed text is not shown again if it is rejected, because it may be a secret.
SECRET_FIELDS = {"target", "secret"}
LOCKABLE_FIELDS = {"target", "secret", "allow_private"}  # a browser does not send a locked field: it stays as it is


async def show_subscriptions(server: PageServer, request: Request) -> Response:
    """Show a part of the subscriptions with the state of their deliveries."""
    after = parse_number(request.query_params.get("after", ""))
    statuses = await notifications.list_statuses(server.db, after=after, max_count=MAX_SHOWN + 1)
    is_more = len(statuses) > MAX_SHOWN
    return _respond(server, request, "notifications.html", statuses=statuses[:MAX_SHOWN], is_more=is_more, after=after)


async def show_subscription(server: PageServer, request: Request) -> Response:
    """Show one subscription, its deliveries and its dead letters."""
    number = parse_number(request.query_params.get("number", ""))
    status = await notifications.find_status(server.db, number)
    letters = await notifications.list_dead_letters(server.db, number, max_count=MAX_LETTERS)
    context: dict[str, Any] = {
        "letters": letters,
        "headline": notifications.format_headline,
        "is_cut": len(letters) < status.subscription.dead,
    }
    return _respond(server, request, "subscription.html", each=status, **context)


async def show_form(server: PageServer, request: Request) -> Response:
    """Show the form of a new subscription, or of the one with the number in the address."""
    number = parse_number(request.query_params.get("number", ""))
    values, kinds = {name: text for name, text in request.query_params.items() if name in NAMES}, NEWS
    if number:
        subscription = await notifications.find_subscription(server.db, number)
        values, kinds = _fill_form(notifications.build_request(subscription)), subscription.options.kinds
    return _respond_form(server, request, number, Typed(values), kinds)


async def save_subscription(server: PageServer, request: Request) -> Response:
    """Add or change a subscription. If it is rejected, show the form again with what was typed and why."""
    form = await server.read_form(request)
    number = parse_number(form.get("number", ""))
    kinds = frozenset(kind for kind in EventKind if kind.value in form.get("kind", "").splitlines())
    try:
        wanted = _parse_form(form, kinds, is_new=not number)
        if number:
            changed = await notifications.change_subscription(server.db, number, wanted, at=server.now())
        else:
            changed = await notifications.subscribe(server.db, SubscriptionRequest(**wanted), at=server.now())
    except BadInput as error:
        problems = {error.field if error.field in NAMES else "": capitalize_first(str(error))}
        is_secret = error.field in SECRET_FIELDS and not isinstance(error, ReceiverNotAllowed)
        typed = {name: text for name, text in form.items() if name != error.field or not is_secret}
        if number:
            subscription = await notifications.find_subscription(server.db, number)
            stored = _fill_form(notifications.build_request(subscription))
            typed |= {name: stored[name] for name in LOCKABLE_FIELDS - form.keys()}
        return _respond_form(server, request, number, Typed(typed, problems), kinds, status=400)
    except CrawlerError as error:
        return server.reject(request, form, error)
    done = "was changed" if number else "was added"
    message = f"Subscription {changed.id} {done}: {changed.options.target} receives {format_selection(changed)}."
    return server.finish(request, _end(changed.id, message if number else f"{message} Send a test message next."))


def _parse_form(form: Form, kinds: frozenset[EventKind], *, is_new: bool) -> dict[str, Any]:
    """Return the fields of a SubscriptionRequest. Raises BadInput."""
    texts = {name: form.get(name, "").strip() for name in NAMES}
    condition, value = texts["condition"], texts["value"]
    if condition not in CONDITIONS:
        raise BadInput("choose a condition of the list", field="condition")
    if bool(condition) is not bool(value):
        raise BadInput("a condition needs a text or a number, and the other way round", field="value")
    bound: str | float = value
    if condition in {"below", "above"}:
        try:
            bound = float(value)
        except ValueError as error:
            raise BadInput(f"{value[:40]!r} is not a number", field="value") from error
    names = {"selector": "place", "quiet_hours": "quiet", "time_zone": "zone"}
    copied = {names.get(name, name): text for name, text in texts.items() if name not in {"condition", "value"}}
    wanted = copied | {
        "allow_private": texts["allow_private"] == "yes",
        "conditions": {condition: bound} if condition else {},
        # The preselected kinds of a new subscription stand for the default, which depends on the condition.
        "kinds": None if is_new and kinds == NEWS else ",".join(sorted(kinds)),
    }
    kept = set() if is_new else LOCKABLE_FIELDS - form.keys()
    return {name: value for name, value in wanted.items() if name not in kept}


def _fill_form(request: SubscriptionRequest) -> dict[str, str]:
    """Return the texts of the form of a subscription."""
    names = {"selector": "place", "quiet_hours": "quiet", "time_zone": "zone"}
    (condition, value), *_ = [*request.conditions.items(), ("", "")]
    values = {name: getattr(request, names.get(name, name), None) for name in NAMES}
    values |= {"condition": condition, "value": f"{value:.15g}" if isinstance(value, float) else value}
    values["allow_private"] = FLAG[request.allow_private]
    return {name: str(text or "") for name, text in values.items()}


def _make_fields(group: tuple[Field, ...], typed: Typed) -> list[Field]:
    """Return the fields of a group with what was typed."""
    values = {each.name: each.choices[0] for each in group if each.choices}
    values |= {name: sanitize_text(text) for name, text in typed.values.items()}
    problems = typed.problems
    return [replace(each, value=values.get(each.name, ""), problem=problems.get(each.name, "")) for each in group]


def _respond_form(
    server: PageServer, request: Request, number: int, typed: Typed, kinds: frozenset[EventKind], *, status: int = 200
) -> Response:
    context: dict[str, Any] = {"number": number, "kinds": list(EventKind), "chosen": kinds}
    context["groups"] = {title: _make_fields(group, typed) for title, group in GROUPS.items()}
    context |= {"folded": FOLDED, "locked": set()}
    identity: Identity = request.scope["identity"]
    if Permission.MANAGE not in identity.actor.permissions:
        is_reference = number and typed.values.get("target", "").startswith(("env:", "block:"))
        context["locked"] = LOCKABLE_FIELDS if is_reference else LOCKABLE_FIELDS - {"target"}
    context["problem"] = typed.problems.get("", "")
    return _respond(server, request, "subscription_form.html", status=status, **context)


def _respond(server: PageServer, request: Request, template: str, *, status: int = 200, **context: object) -> Response:
    viewer = server.build_viewer(request)
    words = {"format_selection": format_selection, "now": server.now()}
    return respond_html(render(template, SERVER_LINKS, viewer, **words, **context), status)


def _end(number: int, message: str, *, is_well: bool = True) -> Outcome:
    return Outcome(message, is_well=is_well, next_page=SERVER_LINKS.subscription(number))


async def send_test(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Send a test message now. Raises BadInput."""
    subscription, error = await notifications.send_test_notification(db, _get_number(form))
    target = subscription.options.target
    message = f"The test message to {target} failed: {error}." if error else f"A test message was sent to {target}."
    return _end(subscription.id, message, is_well=not error)


async def deliver(db: AppDatabase, form: Form, _at: datetime, *, done: str = "") -> Outcome:
    """Send what is due to one subscription. done: what was done before. Raises BadInput."""
    number = _get_number(form)
    clock = Clock.from_instant(None)
    stats = await notifications.deliver_due(db, clock=clock, number=number, max_duration=MAX_DELIVERY)
    if why := stats.undelivered.get(number, ""):
        return _end(number, f"{done}The delivery failed: {why}.", is_well=False)
    sent = format_delivered(stats.changes, stats.messages) if stats.messages else "nothing is due now"
    return _end(number, f"{done}{capitalize_first(sent)}.")


async def pause(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Pause a subscription. Raises BadInput."""
    _, subscription = await notifications.pause(db, _get_number(form), at=at, stop=asyncio.Event())
    waiting = f"; {format_count(subscription.waiting, 'change')} waiting" if subscription.waiting else ""
    return _end(subscription.id, f"Subscription {subscription.id} is paused{waiting}.")


async def resume(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Resume a subscription, with or without the changes found during the pause. Raises BadInput."""
    missed = bool(form.get("include_missed"))
    _, subscription = await notifications.resume(db, _get_number(form), missed=missed, at=at, stop=asyncio.Event())
    since = "the changes found during the pause" if missed else "changes found from now on"
    return _end(subscription.id, f"Subscription {subscription.id} is resumed: it receives {since}.")


async def remove(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Remove a subscription with what waits. Raises BadInput."""
    removed = await notifications.unsubscribe(db, _get_number(form))
    message = f"Subscription {removed.id} to {removed.options.target} was removed."
    return Outcome(message, next_page=SERVER_LINKS.notifications())


async def redeliver(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Queue a dead letter again, or all of a subscription, and send what is due. Raises BadInput."""
    count = await notifications.redeliver_letters(db, _get_letters(form), number=_get_number(form), at=at)
    if not count:
        raise BadInput("this is no dead letter any more: it was sent, queued again or deleted meanwhile")
    return await deliver(db, form, at, done=f"{format_count(count, 'dead letter')} queued again. ")


async def discard(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Delete a dead letter, or all of a subscription. Raises BadInput."""
    number = _get_number(form)
    count = await notifications.discard_letters(db, _get_letters(form), number=number, at=at)
    return _end(number, f"{format_count(count, 'dead letter')} deleted.")


def _get_number(form: Mapping[str, str]) -> int:
    return parse_number(form.get("number", ""))


def _get_letters(form: Form) -> list[int] | None:
    """Return the dead letter that a form names; None for all."""
    return [parse_number(form["letter"])] if "letter" in form else None


PAGES = {
    "/notifications": show_subscriptions,
    "/notifications/subscription": show_subscription,
    "/notifications/edit": show_form,
}
FORMS = {"/notifications/save": save_subscription}
ACTIONS: dict[str, Action] = {
    "/notifications/test": send_test,
    "/notifications/send": deliver,
    "/notifications/pause": pause,
    "/notifications/resume": resume,
    "/notifications/remove": remove,
    "/notifications/redeliver": redeliver,
    "/notifications/discard": discard,
}
