"""The application: which address shows what, and what each form does. Pages are made here, and nothing runs in them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from crawler.app.changes import Database, EventKind, newest_changes
from crawler.app.delivery.feeds import FEED, FeedWanted, linked_path, may_read, read_feed
from crawler.app.overview import (
    CARD_INSTANTS,
    CARD_PAGES,
    HOWEVER_OLD,
    Domain,
    DomainCard,
    DomainFacts,
    UncountedCard,
    examine_domain,
    list_summaries,
    summarize_domain,
    uncounted_card,
)
from crawler.app.pages import Url, VersionsQuery
from crawler.app.pieces import find_pieces
from crawler.app.registration import domain_named, url_of
from crawler.app.running.serving import ENTRANCE, DomainCounter, IndexKeeper, ParserPool, give_back
from crawler.app.try_page import TryWay, try_url_of
from crawler.clock import Clock
from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.format.kinds import NEWS, format_kind
from crawler.server.access import SESSION_LASTS, Asgi, Doorkeeper, guarded
from crawler.server.api import API_PATH, ApiOnDemand
from crawler.server.remembered import Remembered
from crawler.server.ui import actions
from crawler.server.ui.actions import Outcome
from crawler.server.ui.changes import ChangesAsked, change_facts
from crawler.server.ui.links import SERVED
from crawler.server.ui.page import url_facts
from crawler.server.ui.render import (
    Notice,
    Viewer,
    changes_page,
    domain_page,
    home_page,
    pieces_page,
    problem_page,
    uncounted_page,
    url_page,
)
from crawler.server.ui.render import try_page as tried_page
from crawler.server.ui.shown import style
from crawler.settings import settings

MOST_FORM_BYTES = 64 << 10
MOST_NOTICES = 1000  # of sessions that sent a form and never looked at what came of it
NEWEST = 10  # changes on the first page
NEWEST_OF_DOMAIN = 5
MOST_PLANNED = 50  # domains that are read for the forecast of one: a second
NO_STORE = {"cache-control": "no-store"}

Page = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class PageServer:
    """All that the pages are made of. now: knowledge time.  index: of searches by the API."""

    db: Database
    readers: ParserPool
    doorkeeper: Doorkeeper
    now: Callable[[], datetime]
    counter: DomainCounter
    index: IndexKeeper
    home: Path  # of the API's tokens, and of the addresses of feeds; read at each request, so that both count at once
    _notices: dict[str, Notice] = field(default_factory=dict)
    _cards: Remembered[DomainCard | None] = field(default_factory=Remembered)
    _facts: Remembered[DomainFacts | None] = field(default_factory=Remembered)

    async def card(self, domain: Domain) -> DomainCard | UncountedCard | None:
        """A domain in short, as it was a moment ago at most; None if it was removed meanwhile.

        Nobody waits while a large domain is counted: its figures are as they were counted before.
        """
        if not await self.counter.has_figures(domain):
            return await uncounted_card(self.db, domain)
        return await self._cards.get(
            domain.id,
            lambda: summarize_domain(
                self.db, domain, at=self.now(), sample=CARD_PAGES, instants=CARD_INSTANTS, kept_for=HOWEVER_OLD
            ),
        )

    async def facts(self, domain: Domain) -> DomainFacts | UncountedCard | None:
        """All about a domain, likewise."""

        async def found() -> DomainFacts | None:
            card = await summarize_domain(self.db, domain, at=self.now(), kept_for=HOWEVER_OLD)
            if card is None:
                return None
            return await examine_domain(self.db, settings(), card, kept_for=HOWEVER_OLD, most_planned=MOST_PLANNED)

        if not await self.counter.has_figures(domain):
            return await uncounted_card(self.db, domain)
        return await self._facts.get(domain.id, found)

    def forget(self, domain: Domain) -> None:
        """Reckon a domain's figures anew: its user has changed it."""
        self._cards.forget(domain.id)
        self._facts.forget(domain.id)

    def reader(self, request: Request) -> Viewer:
        """Who looks: what their forms carry, and what came of the form that they sent last."""
        session = request.scope["session"]
        return Viewer(word=self.doorkeeper.form_word(session), notice=self._notices.pop(session, None))

    def tell(self, request: Request, notice: Notice) -> None:
        """Say on the next page of a session what came of its form."""
        if len(self._notices) >= MOST_NOTICES:
            self._notices.clear()
        self._notices[request.scope["session"]] = notice


def application(server: PageServer) -> Asgi:
    """The pages, behind their doorkeeper."""
    pages: dict[str, Page] = {
        "/": _home(server),
        "/domain": _domain(server),
        "/changes": _changes(server),
        "/page": _page(server),
        "/pieces": _pieces(server),
        ENTRANCE: _enter(server),
        "/style.css": _style,
        FEED: _feed(server),
    }
    forms: dict[str, Page] = {
        "/domains/add": _form(server, _added),
        "/domains/set": _form(server, _set),
        "/domains/set-one": _form(server, _set_one),
        "/domains/remove": _form(server, _removed),
        "/domains/pause": _form(server, _paused),
        "/domains/resume": _form(server, _resumed),
        "/refresh": _form(server, _refreshed),
        "/rules/add": _form(server, _rule_added),
        "/rules/remove": _form(server, _rule_removed),
        "/try": _tried(server),
    }
    handlers: dict[Any, Any] = {
        BadInput: _bad(server, 400),
        StoreUnavailable: _bad(server, 503),
        CrawlerError: _bad(server, 500),
        Exception: _broken(server),
        404: _missing(server),
    }
    made = Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
            *(Route(path, form, methods=["POST"]) for path, form in forms.items()),
            Route(API_PATH, ApiOnDemand(server.db, server.home, now=server.now, want_index=server.index.want)),
        ],
        exception_handlers=handlers,
    )
    return guarded(_sparing(made), server.doorkeeper, now=server.now, refuse=_stranger)


def _sparing(app: Asgi) -> Asgi:
    """The application, which keeps no more memory than it needs between two answers: they may be days apart."""

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        give_back()

    return answered


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status_code=status, headers=NO_STORE)


def _home(server: PageServer) -> Page:
    async def home(request: Request) -> Response:
        at = server.now()
        facts = await list_summaries(server.db, server.card, at=at, after=request.query_params.get("after", ""))
        items = await newest_changes(server.db, at=at, most=NEWEST)
        return _html(home_page(facts, items, links=SERVED, reader=server.reader(request)))

    return home


def _domain(server: PageServer) -> Page:
    async def domain(request: Request) -> Response:
        at = server.now()
        found = await _named(server, request.query_params.get("name", ""))
        facts = await server.facts(found)
        if facts is None:
            raise BadInput(f"{found.authority} is not registered any more")
        if isinstance(facts, UncountedCard):
            items = await newest_changes(server.db, at=at, most=NEWEST, only=found)
            return _html(uncounted_page(facts, items, links=SERVED, reader=server.reader(request), now=at))
        items = await newest_changes(server.db, at=at, most=NEWEST_OF_DOMAIN, only=found)
        return _html(domain_page(facts, items, links=SERVED, reader=server.reader(request), now=at))

    return domain


def _changes(server: PageServer) -> Page:
    async def changes(request: Request) -> Response:
        given = request.query_params
        kinds = frozenset(kind for kind in EventKind if kind.value in given.getlist("kind"))
        asked = ChangesAsked(
            domain=given.get("domain", ""),
            kinds=kinds or NEWS,
            since=given.get("since", ""),
            before=given.get("before", ""),
        )
        facts = await change_facts(server.db, asked, at=server.now())
        wanted = FeedWanted(domain=asked.domain, kinds=",".join(sorted(map(format_kind, kinds))))
        feed = await asyncio.to_thread(linked_path, server.home, wanted)
        return _html(changes_page(facts, links=SERVED, reader=server.reader(request), feed=feed))

    return changes


def _feed(server: PageServer) -> Page:
    async def feed(request: Request) -> Response:
        given = request.query_params
        wanted = FeedWanted(given.get("domain", ""), given.get("prefix", ""), given.get("kind", ""))
        token = given.get("token", "")
        if not request.scope["session"] and not await asyncio.to_thread(may_read, server.home, wanted, token):
            return PlainTextResponse("recrawl feed prints the address of a feed", status_code=401, headers=NO_STORE)
        origin = server.doorkeeper.addresses[0]
        document = await read_feed(
            server.db, wanted, address=f"{origin}{request.url.path}?{request.url.query}", origin=origin, at=server.now()
        )
        headers = {"etag": document.etag, "cache-control": "private, no-cache"}
        if document.is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(document.body, media_type="application/atom+xml; charset=utf-8", headers=headers)

    return feed


def _page(server: PageServer) -> Page:
    async def page(request: Request) -> Response:
        given = request.query_params
        asked = VersionsQuery(
            before=actions.number(given.get("from", "")),
            after=actions.number(given.get("to", "")),
            older_than=actions.number(given.get("older", "")) or None,
        )
        url = _url(given.get("url", ""))
        domain = await _named(server, url)
        facts = await url_facts(server.db, domain, url, asked, readers=server.readers, at=server.now())
        is_beside = given.get("view", "") == "sides"
        return _html(url_page(facts, links=SERVED, reader=server.reader(request), is_beside=is_beside))

    return page


def _pieces(server: PageServer) -> Page:
    async def pieces(request: Request) -> Response:
        url = _url(request.query_params.get("url", ""))
        domain = await _named(server, url)
        asked = actions.piece_asked(dict(request.query_params))
        facts = await find_pieces(server.db, domain, url, asked, readers=server.readers)
        if facts is None:
            raise BadInput(f"no text of {url} is kept yet: crawl it first")
        return _html(pieces_page(facts, links=SERVED, reader=server.reader(request)))

    return pieces


def _enter(server: PageServer) -> Page:
    async def enter(request: Request) -> Response:
        session = server.doorkeeper.admit(request.query_params.get("code", ""), at=server.now())
        if session is None and not request.scope["session"]:
            return _html(problem_page("This address has been used, or is too old", ADMISSION), 403)
        answer = RedirectResponse("/", status_code=303, headers=NO_STORE)
        if session is not None:
            answer.set_cookie(
                server.doorkeeper.cookie,
                session,
                max_age=int(SESSION_LASTS.total_seconds()),
                httponly=True,
                samesite="strict",
            )
        return answer

    return enter


async def _style(_request: Request) -> Response:
    return Response(style(), media_type="text/css", headers={"cache-control": "private, max-age=3600"})


UNFORESEEN = "Something is stored that was not foreseen. The log tells what; recrawl db check looks for more of it."
ADMISSION = "The commands recrawl serve, recrawl up and recrawl ui print an address that lets you in once."


async def _stranger(scope: Any, receive: Any, send: Any) -> None:
    await _html(problem_page("You have not entered yet", ADMISSION), 401)(scope, receive, send)


Done = Callable[[PageServer, dict[str, str]], Awaitable[tuple[Outcome, str]]]


def _form(server: PageServer, act: Done) -> Page:
    """A form that changes something: its answer leads to the page that shows what came of it."""

    async def answer(request: Request) -> Response:
        form = await _read(server, request)
        if isinstance(form, Response):
            return form
        try:
            outcome, onward = await act(server, form)
        except CrawlerError as error:
            server.tell(request, Notice(str(error), is_well=False))
            return RedirectResponse(_back(form), status_code=303, headers=NO_STORE)
        server.forget(outcome.domain)
        server.tell(request, Notice(outcome.said, is_well=outcome.is_well, href=outcome.seen_at))
        return RedirectResponse(onward, status_code=303, headers=NO_STORE)

    return answer


async def _read(server: PageServer, request: Request) -> dict[str, str] | Response:
    """What a form holds; or the refusal of one that this server has not made for this session."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_FORM_BYTES:
            return PlainTextResponse("the form is too large", status_code=413)
    form = dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True))
    if not server.doorkeeper.is_form_of(request.scope["session"], form.pop("word", "")):
        return _html(problem_page("This form is not of your session", "Open the page anew, and send it again."), 403)
    return form


def _back(form: dict[str, str]) -> str:
    """The page that a form stood on; never another site."""
    return form["back"] if form.get("back", "").startswith("/") and not form["back"].startswith("//") else SERVED.home()


async def _added(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    outcome = await actions.add_domain(server.db, form, at=server.now())
    return outcome, SERVED.domain(outcome.domain.authority)


async def _set(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    outcome = await actions.set_domain(server.db, domain, form, at=server.now())
    return outcome, SERVED.domain(domain.authority)


async def _set_one(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    outcome = await actions.set_one(server.db, domain, form, at=server.now())
    return outcome, SERVED.domain(domain.authority)


async def _removed(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    return await actions.remove(server.db, domain, form), SERVED.home()


async def _paused(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    return await actions.set_paused(server.db, domain, paused=True), SERVED.domain(domain.authority)


async def _resumed(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    return await actions.set_paused(server.db, domain, paused=False), SERVED.domain(domain.authority)


async def _refreshed(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    return await actions.refresh(server.db, domain, form.get("prefix", "").strip()), _back(form)


async def _rule_added(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    url = _url(form.get("url", ""))
    domain = await _named(server, url)
    outcome = await actions.make_rule(server.db, domain, actions.piece_asked(form), at=server.now())
    return outcome, SERVED.page(url)


async def _rule_removed(server: PageServer, form: dict[str, str]) -> tuple[Outcome, str]:
    domain = await _named(server, form.get("name", ""))
    outcome = await actions.remove_rule(server.db, domain, form.get("pattern", ""), at=server.now())
    return outcome, SERVED.domain(domain.authority)


def _tried(server: PageServer) -> Page:
    """One look that is shown at once and not recorded."""

    async def answer(request: Request) -> Response:
        form = await _read(server, request)
        if isinstance(form, Response):
            return form
        url = _url(form.get("url", ""))
        domain = await _named(server, url)
        how = TryWay(again=bool(form.get("again")))
        seen = await try_url_of(server.db, settings(), domain, url, how=how, clock=Clock.at(server.now()))
        return _html(tried_page(seen, domain, links=SERVED, reader=server.reader(request)))

    return answer


async def _named(server: PageServer, text: str) -> Domain:
    if not text:
        raise BadInput("no domain is named")
    return await domain_named(server.db, text)


def _url(text: str) -> Url:
    """The URL that an address names, without a scheme that could run anything. Raises BadInput."""
    if not text:
        raise BadInput("no page is named")
    return url_of(text)


def _bad(server: PageServer, status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        reader = server.reader(request)
        return _html(problem_page("That cannot be shown", str(error), reader=reader), status)

    return answer


def _broken(server: PageServer) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Whatever was not foreseen is told without its details, which are in the log."""

    async def answer(request: Request, _error: Exception) -> Response:
        return _html(problem_page("That could not be shown", UNFORESEEN, reader=server.reader(request)), 500)

    return answer


def _missing(server: PageServer) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, _error: Exception) -> Response:
        return _html(problem_page("There is no such page", "", reader=server.reader(request)), 404)

    return answer
