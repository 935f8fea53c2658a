"""The application: which address shows what, and what each form does. Pages are made here, and nothing runs in them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.app import overview
from crawler.app.changes import Database, EventKind, newest_changes
from crawler.app.delivery.feeds import FEED, FeedWanted, linked_path, may_read, read_feed
from crawler.app.pages import VersionsQuery
from crawler.app.pieces import find_pieces
from crawler.app.registration import domain_named
from crawler.app.running.serving import ENTRANCE, DomainCounter, IndexKeeper, ParserPool, give_back
from crawler.app.try_page import TryWay, try_url_of
from crawler.clock import Clock
from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.format.kinds import NEWS, format_kind
from crawler.server.access import NO_STORE, SESSION_LASTS, Doorkeeper, guarded
from crawler.server.api import API_PATH, ApiOnDemand
from crawler.server.remembered import Remembered
from crawler.server.ui import actions, render
from crawler.server.ui.actions import Action
from crawler.server.ui.facts import ChangesAsked, change_facts, url_facts
from crawler.server.ui.links import SERVED
from crawler.server.ui.shown import style

MOST_FORM_BYTES = 64 << 10
MOST_NOTICES = 1000  # of sessions that sent a form and never looked at what came of it
NEWEST = 10  # changes on the first page
NEWEST_OF_DOMAIN = 5
MOST_PLANNED = 50  # domains that are read for the forecast of one: a second

UNFORESEEN = "Something is stored that was not foreseen. The log tells what; recrawl db check looks for more of it."
ADMISSION = "The commands recrawl serve, recrawl up and recrawl ui print an address that lets you in once."

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
    home_folder: Path  # of tokens and addresses of feeds, which are read at each request: both count at once
    _notices: dict[str, render.Notice] = field(default_factory=dict)
    _cards: Remembered[overview.DomainCard | None] = field(default_factory=Remembered)
    _facts: Remembered[overview.DomainFacts | None] = field(default_factory=Remembered)

    async def card(self, domain: overview.Domain) -> overview.DomainCard | overview.UncountedCard | None:
        """A domain in short, as it was a moment ago at most; None if it was removed meanwhile.

        Nobody waits while a large domain is counted: its figures are as they were counted before.
        """
        if not await self.counter.has_figures(domain):
            return await overview.uncounted_card(self.db, domain)
        return await self._cards.get(
            domain.id,
            lambda: overview.summarize_domain(
                self.db,
                domain,
                at=self.now(),
                sample=overview.CARD_PAGES,
                instants=overview.CARD_INSTANTS,
                kept_for=overview.HOWEVER_OLD,
            ),
        )

    async def facts(self, domain: overview.Domain) -> overview.DomainFacts | overview.UncountedCard | None:
        """All about a domain, likewise."""
        kept_for = overview.HOWEVER_OLD

        async def found() -> overview.DomainFacts | None:
            card = await overview.summarize_domain(self.db, domain, at=self.now(), kept_for=kept_for)
            if card is None:
                return None
            return await overview.examine_domain(self.db, card, kept_for=kept_for, most_planned=MOST_PLANNED)

        if not await self.counter.has_figures(domain):
            return await overview.uncounted_card(self.db, domain)
        return await self._facts.get(domain.id, found)

    def reader(self, request: Request) -> render.Viewer:
        """Who looks: what their forms carry, and what came of the form that they sent last."""
        session = request.scope["session"]
        return render.Viewer(word=self.doorkeeper.form_word(session), notice=self._notices.pop(session, None))

    async def home(self, request: Request) -> Response:
        at = self.now()
        facts = await overview.list_summaries(self.db, self.card, at=at, after=request.query_params.get("after", ""))
        items = await newest_changes(self.db, at=at, most=NEWEST)
        return _html(render.home_page(facts, items, reader=self.reader(request)))

    async def domain(self, request: Request) -> Response:
        at = self.now()
        found = await actions.find_domain(self.db, request.query_params.get("name", ""))
        facts = await self.facts(found)
        if facts is None:
            raise BadInput(f"{found.authority} is not registered any more")
        if isinstance(facts, overview.UncountedCard):
            items = await newest_changes(self.db, at=at, most=NEWEST, only=found)
            return _html(render.uncounted_page(facts, items, reader=self.reader(request), now=at))
        items = await newest_changes(self.db, at=at, most=NEWEST_OF_DOMAIN, only=found)
        return _html(render.domain_page(facts, items, reader=self.reader(request), now=at))

    async def changes(self, request: Request) -> Response:
        given = request.query_params
        kinds = frozenset(kind for kind in EventKind if kind.value in given.getlist("kind"))
        asked = ChangesAsked(
            domain=given.get("domain", ""),
            kinds=kinds or NEWS,
            since=given.get("since", ""),
            before=given.get("before", ""),
        )
        facts = await change_facts(self.db, asked, at=self.now())
        wanted = FeedWanted(domain=asked.domain, kinds=",".join(sorted(map(format_kind, kinds))))
        feed = await asyncio.to_thread(linked_path, self.home_folder, wanted)
        return _html(render.changes_page(facts, reader=self.reader(request), feed=feed))

    async def feed(self, request: Request) -> Response:
        given = request.query_params
        wanted = FeedWanted(given.get("domain", ""), given.get("prefix", ""), given.get("kind", ""))
        token = given.get("token", "")
        if not request.scope["session"] and not await asyncio.to_thread(may_read, self.home_folder, wanted, token):
            return PlainTextResponse("recrawl feed prints the address of a feed", status_code=401, headers=NO_STORE)
        origin = self.doorkeeper.addresses[0]
        address = f"{origin}{request.url.path}?{request.url.query}"
        document = await read_feed(self.db, wanted, address=address, origin=origin, at=self.now())
        headers = {"etag": document.etag, "cache-control": "private, no-cache"}
        if document.is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(document.body, media_type="application/atom+xml; charset=utf-8", headers=headers)

    async def page(self, request: Request) -> Response:
        given = request.query_params
        asked = VersionsQuery(
            before=actions.number(given.get("from", "")),
            after=actions.number(given.get("to", "")),
            older_than=actions.number(given.get("older", "")) or None,
        )
        url = actions.parse_url(given.get("url", ""))
        domain = await domain_named(self.db, url)
        facts = await url_facts(self.db, domain, url, asked, readers=self.readers, at=self.now())
        return _html(render.url_page(facts, reader=self.reader(request), is_beside=given.get("view", "") == "sides"))

    async def pieces(self, request: Request) -> Response:
        url = actions.parse_url(request.query_params.get("url", ""))
        domain = await domain_named(self.db, url)
        asked = actions.piece_asked(request.query_params)
        facts = await find_pieces(self.db, domain, url, asked, readers=self.readers)
        if facts is None:
            raise BadInput(f"no text of {url} is kept yet: crawl it first")
        return _html(render.pieces_page(facts, reader=self.reader(request)))

    async def enter(self, request: Request) -> Response:
        session = self.doorkeeper.admit(request.query_params.get("code", ""), at=self.now())
        if session is None and not request.scope["session"]:
            return _html(render.problem_page("This address has been used, or is too old", ADMISSION), 403)
        answer = _see_other("/")
        if session is not None:
            age = int(SESSION_LASTS.total_seconds())
            answer.set_cookie(self.doorkeeper.cookie, session, max_age=age, httponly=True, samesite="strict")
        return answer

    async def try_url(self, request: Request) -> Response:
        """Look at a page once; what is found is shown at once and not recorded."""
        form = await self._read(request)
        url = actions.parse_url(form.get("url", ""))
        domain = await domain_named(self.db, url)
        how = TryWay(again=bool(form.get("again")))
        seen = await try_url_of(self.db, domain, url, how=how, clock=Clock.at(self.now()))
        return _html(render.try_page(seen, domain, reader=self.reader(request)))

    def form(self, act: Action) -> Page:
        """Return the answer to a form that changes something: it leads to the page that shows what came of it."""

        async def answer(request: Request) -> Response:
            form = await self._read(request)
            try:
                outcome = await act(self.db, form, self.now())
            except CrawlerError as error:
                self._tell(request, render.Notice(str(error), is_well=False))
                return _see_other(actions.page_before(form))
            self._cards.forget(outcome.domain.id)  # its user has changed it
            self._facts.forget(outcome.domain.id)
            self._tell(request, render.Notice(outcome.said, is_well=outcome.is_well, href=outcome.seen_at))
            return _see_other(outcome.onward or SERVED.domain(outcome.domain.authority))

        return answer

    async def _read(self, request: Request) -> dict[str, str]:
        """Return what a form holds. Raise HTTPException for one that this server has not made for this session."""
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_FORM_BYTES:
                raise HTTPException(413, "the form is too large")
        form = dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True))
        if not self.doorkeeper.is_form_of(request.scope["session"], form.pop("word", "")):
            raise HTTPException(403)
        return form

    def _tell(self, request: Request, notice: render.Notice) -> None:
        """Say on the next page of a session what came of its form."""
        if len(self._notices) >= MOST_NOTICES:
            self._notices.clear()
        self._notices[request.scope["session"]] = notice

    def problem(self, title: str, status: int, said: str | None = None) -> Callable[[Request, Exception], Any]:
        """Return the answer to an error. said: None for what the error says; else its details are in the log alone."""

        async def answer(request: Request, error: Exception) -> Response:
            told = str(error) if said is None else said
            return _html(render.problem_page(title, told, reader=self.reader(request)), status)

        return answer


def application(server: PageServer) -> ASGIApp:
    """The pages, behind their doorkeeper."""
    pages: dict[str, Page] = {
        "/": server.home,
        "/domain": server.domain,
        "/changes": server.changes,
        "/page": server.page,
        "/pieces": server.pieces,
        ENTRANCE: server.enter,
        "/style.css": _style,
        FEED: server.feed,
    }
    forms = {path: server.form(act) for path, act in actions.FORMS.items()} | {"/try": server.try_url}
    api = ApiOnDemand(server.db, server.home_folder, now=server.now, want_index=server.index.want)
    handlers: dict[Any, Any] = {
        BadInput: server.problem("That cannot be shown", 400),
        StoreUnavailable: server.problem("That cannot be shown", 503),
        CrawlerError: server.problem("That cannot be shown", 500),
        Exception: server.problem("That could not be shown", 500, UNFORESEEN),
        403: _foreign_form,
        404: server.problem("There is no such page", 404, ""),
    }
    made = Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
            *(Route(path, form, methods=["POST"]) for path, form in forms.items()),
            Route(API_PATH, api),
        ],
        exception_handlers=handlers,
    )
    return guarded(_sparing(made), server.doorkeeper, now=server.now, refuse=_stranger)


def _sparing(app: ASGIApp) -> ASGIApp:
    """The application, which keeps no more memory than it needs between two answers: they may be days apart."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        give_back()

    return answered


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status_code=status, headers=NO_STORE)


def _see_other(path: str) -> Response:
    return RedirectResponse(path, status_code=303, headers=NO_STORE)


async def _style(_request: Request) -> Response:
    return Response(style(), media_type="text/css", headers={"cache-control": "private, max-age=3600"})


async def _stranger(scope: Scope, receive: Receive, send: Send) -> None:
    await _html(render.problem_page("You have not entered yet", ADMISSION), 401)(scope, receive, send)


async def _foreign_form(_request: Request, _error: Exception) -> Response:
    return _html(render.problem_page("This form is not of your session", "Open the page anew, and send it again."), 403)
