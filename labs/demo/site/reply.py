"""The responses of the living site, as a function of the request, the instant and the number of earlier requests."""

from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache
from hashlib import blake2b

from labs.demo.site.maps import map_of
from labs.demo.site.render import STYLE, render
from labs.demo.site.sheet import Behaviour, Serving, Sheet
from labs.demo.site.site import CHAIN, CHAIN_STATUSES, DISALLOWED, ROBOTS_PATH, Site

HTML = "text/html; charset=utf-8"
ROBOTS = f"User-agent: *\nDisallow: {DISALLOWED}\n"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to the site. path: without its query."""

    path: str
    if_none_match: str | None = None
    if_modified_since: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A response. headers: those that the site decides; the server adds length, date and connection."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A version of a sheet as bytes, with its ETag."""

    before: bytes
    after: bytes
    etag: str


def reply(site: Site, ask: Ask, at: datetime, look: int) -> Reply:
    """Return the response to a request at an instant.

    look: the number of the request, from 1. Tokens and the clock's "generated in" depend on it, as if random.
    """
    sheet = site.find(ask.path)
    if sheet is None:
        return reply_without_sheet(site, ask, at)
    if not site.exists(ask.path, at):
        return absent(sheet, at)
    if sheet.is_broken(at):
        return plain(500, "The almanac has lost its ink. Please come back later.")
    return present(site, sheet, ask, at, look)


def reply_without_sheet(site: Site, ask: Ask, at: datetime) -> Reply:
    path = ask.path
    said = map_of(site, path, at)
    if said is not None:
        return mapped(said.encode(), ask)
    if path == ROBOTS_PATH:
        return Reply(200, ROBOTS.encode(), (("Content-Type", "text/plain; charset=utf-8"),))
    if path == "/style.css":
        return Reply(200, STYLE.encode(), (("Content-Type", "text/css; charset=utf-8"),))
    if path in CHAIN:
        hop = CHAIN.index(path)
        return redirect(CHAIN_STATUSES[hop], (*CHAIN[1:], site.chain_end)[hop])
    return plain(404, "There is no such page in the almanac.")


def mapped(body: bytes, ask: Ask) -> Reply:
    """Return a sitemap or the feed, with a correct ETag."""
    tag = ("ETag", f'"{blake2b(body, digest_size=8).hexdigest()}"')
    if is_satisfied(ask, dict([tag])):
        return Reply(304, headers=(tag,))
    return Reply(200, body, (("Content-Type", "application/xml; charset=utf-8"), tag))


def absent(sheet: Sheet, at: datetime) -> Reply:
    """Return the response for a sheet that is not there yet, no longer there, or moved."""
    if sheet.until is None or at < sheet.until:
        return plain(404, "There is no such page in the almanac.")
    if sheet.moves_to is not None:
        return redirect(sheet.ends_as, sheet.moves_to)
    return plain(sheet.ends_as, "This page was taken out of the almanac.")


def present(site: Site, sheet: Sheet, ask: Ask, at: datetime, look: int) -> Reply:
    version = sheet.version(at)
    text = write(site, sheet.path, version)
    headers = validators(site, sheet, version, at)
    if sheet.serving is not Serving.LIAR_NOW and is_satisfied(ask, dict(headers)):
        return Reply(304, headers=headers)
    slot = footer_slot(site, sheet, at, look).encode()
    return Reply(200, text.before + slot + text.after, (("Content-Type", HTML), *headers))


@lru_cache(maxsize=4096)
def write(site: Site, path: str, version: int) -> Text:
    """Return the bytes of a version, cached because rendering is the most expensive part of a response."""
    page = render(site, site.sheet(path), version)
    before, after = page.before.encode(), page.after.encode()
    return Text(before, after, f'"{blake2b(before + after, digest_size=8).hexdigest()}"')


def validators(site: Site, sheet: Sheet, version: int, at: datetime) -> tuple[tuple[str, str], ...]:
    """Return the validators of a version: true ones, none, or wrong ones."""
    tag = ("ETag", write(site, sheet.path, version).etag)
    date = ("Last-Modified", http_date(sheet.version_began(version)))
    match sheet.serving:
        case Serving.BOTH:
            return (tag, date)
        case Serving.ETAG:
            return (tag,)
        case Serving.LAST_MODIFIED:
            return (date,)
        case Serving.LIAR_FROZEN:
            return (("ETag", write(site, sheet.path, 0).etag), ("Last-Modified", http_date(sheet.written)))
        case Serving.LIAR_NOW:
            return (("Last-Modified", http_date(at)),)
        case Serving.NONE | Serving.TOKEN:
            return ()


def is_satisfied(ask: Ask, headers: dict[str, str]) -> bool:
    """Return whether the request's validators match the current version (RFC 9110, section 13.2.2)."""
    if ask.if_none_match is not None:
        known = {tag.strip().removeprefix("W/") for tag in ask.if_none_match.split(",")}
        return "ETag" in headers and bool(known & {headers["ETag"], "*"})
    if ask.if_modified_since is not None and "Last-Modified" in headers:
        try:
            return parsedate_to_datetime(headers["Last-Modified"]) <= parsedate_to_datetime(ask.if_modified_since)
        except ValueError:
            return False  # the same section says to ignore an invalid date
    return False


def footer_slot(site: Site, sheet: Sheet, at: datetime, look: int) -> str:
    """Return what differs between responses of one version: a clock, a token, or nothing."""
    if sheet.behaviour is Behaviour.CLOCK:
        return f"<p>Generated on {at:%A, %-d %B %Y at %H:%M:%S} UTC in {7 + look * 37 % 83} ms.</p>\n"
    if sheet.serving is Serving.TOKEN:
        token = blake2b(f"{site.seed} {sheet.path} {look}".encode(), digest_size=16).hexdigest()
        return (
            '<form action="/newsletter" method="post"><p>'
            f'<input type="hidden" name="authenticity" value="{token}"><label>Letters by mail to '
            '<input type="email" name="address"></label> <button>Subscribe</button></p></form>\n'
        )
    return ""


def redirect(status: int, path: str) -> Reply:
    answer = plain(status, f"The page stands at {path} now.")
    return Reply(status, answer.body, (*answer.headers, ("Location", path)))


def plain(status: int, sentence: str) -> Reply:
    """Return a short page for everything that is not a sheet."""
    body = f"<!DOCTYPE html>\n<html lang=en><title>{status}</title>\n<h1>{status}</h1>\n<p>{sentence}</p>\n</html>\n"
    return Reply(status, body.encode(), (("Content-Type", HTML),))


def http_date(at: datetime) -> str:
    return format_datetime(at.replace(microsecond=0), usegmt=True)
