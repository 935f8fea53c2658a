"""A server with more than a hundred broken or hostile responses, beside healthy pages.

Each behavior has its own path, which is its name. Bodies are generated on request.
"""

import asyncio
import codecs
import gzip
import io
import random
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from tests.ports import next_port

MB = 1 << 20
HEALTHY = 100
CHANGING = 10  # of the healthy pages; they have other words in every round
POISON = "\x00\x1b]0;owned\x07\x1b[31m\u202e<script>alert(1)</script>"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a page responds. said: returns the bytes of a response, by round.  then: what happens to the connection.

    found: what each visit should find, as "outcome status reason"; if there are several, any of them.
    """

    said: Callable[[int], bytes]
    found: tuple[str, ...]
    then: str = "close"


def head(*headers: str, status: str = "200 OK") -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode("latin-1")


def whole(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    return head(f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, status=status) + body


def html(inside: str, *headers: str, title: str = "A page", more: str = "") -> bytes:
    return whole(f"<!doctype html><head><title>{title}</title>{more}</head><body>{inside}".encode(), *headers)


WELL = "<p>A page that would be well if all else were."
READ, BROKEN = ("fetched 200",), ("unreached garbage",)


def always(answer: bytes) -> Callable[[int], bytes]:
    return lambda _: answer


def raw(answer: bytes, *found: str, then: str = "close") -> Behaviour:
    return Behaviour(always(answer), found or BROKEN, then)


def page(make: Callable[[], bytes], *found: str) -> Behaviour:
    return Behaviour(lambda _: make(), found or READ)


def inside(make: Callable[[], str]) -> Behaviour:
    """Return a page that must be parsed in full in each round."""
    return Behaviour(lambda turn: html(f"<!--{turn}-->{make()}"), READ)


def data(text: str) -> Behaviour:
    return page(lambda: html(WELL, more=f"<script type=application/ld+json>{text}</script>"))


def typed(body: str | bytes, kind: str) -> Behaviour:
    return raw(whole(body.encode() if isinstance(body, str) else body, kind=kind), *READ)


def chunked(body: bytes, *found: str) -> Behaviour:
    return raw(head("Content-Type: text/html", "Transfer-Encoding: chunked") + body, *found)


def redirect(location: str, *found: str, status: str = "302 Found") -> Behaviour:
    return raw(head(f"Location: {location}", "Content-Length: 0", status=status), *found)


def status(line: str, *headers: str) -> Behaviour:
    code = line.split(maxsplit=1)[0]
    return raw(whole(b"<p>No.", *headers, status=line), f"fetched {code} http_{code}")


def packed(encoding: str, body: bytes, *found: str) -> Behaviour:
    return raw(whole(body, f"Content-Encoding: {encoding}"), *found)


def large(encoding: str, pack: Callable[[bytes], bytes]) -> Behaviour:
    return page(lambda: whole(pack(b"0" * (200 * MB)), f"Content-Encoding: {encoding}"), "unreached too_large")


def zipped(name: str, text: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return out.getvalue()


def pdf(pages: bytes, *, stream: bytes = b"") -> bytes:
    packed_stream = zlib.compress(stream)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count 1>>" % pages,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream " % (len(packed_stream), packed_stream),
    )
    written = b"".join(b"%d 0 obj%sendobj\n" % (n, each) for n, each in enumerate(objects, start=1))
    return b"%PDF-1.5\n" + written + b"trailer<</Root 1 0 R>>\n%%EOF"


ODD_LINKS = ("javascript:x", "mailto:a@b", "tel:1", "data:,x", "//", "http://", "http://[", "\\\\x\\y", "?" * 99, "#")
TWICE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
some = random.Random(12)
NOISE = some.randbytes(20_000)

WIRE: dict[str, Behaviour] = {
    "says-nothing": raw(b"", "unreached reset"),
    "says-a-line-end": raw(b"\r\n", "unreached reset"),
    "noise": raw(NOISE),
    "noise-in-the-body": raw(whole(NOISE), *READ),
    "ftp-banner": raw(b"220 ProFTPD 1.3.5 Server ready.\r\n"),
    "ssh-banner": raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "smtp-banner": raw(b"220 mail.example.com ESMTP Postfix\r\n250 OK\r\n"),
    "tls-alert": raw(b"\x15\x03\x01\x00\x02\x02\x46"),
    "http-2": raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00"),
    "http-0-9": raw(b"<html><body>A page without a head."),
    "http-9-9": raw(b"HTTP/9.9 200 OK\r\n\r\n<p>later"),
    "icy": raw(b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n"),
    "status-000": raw(head(status="000 Nothing"), "fetched 500 http_500"),
    "status-99": raw(head(status="99 Little")),
    "status-999": raw(whole(b"<p>No.", status="999 Request denied"), "fetched 500 http_500"),
    "status-of-letters": raw(head(status="OK OK")),
    "status-of-5000-digits": raw(head(status="2" * 5000)),
    "reason-of-bytes": raw(b"HTTP/1.1 200 \xff\xfe\x00\r\nContent-Length: 3\r\n\r\n<p>", *READ),
    "line-feeds-only": raw(b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 6\n\n<p>Yes", *READ),
    "length-below-zero": raw(head("Content-Length: -5") + b"<p>ab"),
    "length-of-letters": raw(head("Content-Length: five") + b"<p>ab"),
    "length-with-a-plus": raw(head("Content-Length: +5") + b"<p>ab"),
    "length-beyond-numbers": raw(head("Content-Length: " + "9" * 400) + b"<p>ab"),
    "two-lengths": raw(head("Content-Length: 5", "Content-Length: 50") + b"<p>ab"),
    "length-and-chunks": raw(head("Content-Length: 5", "Transfer-Encoding: chunked") + b"2\r\n<p\r\n0\r\n\r\n"),
    "ends-early": raw(head("Content-Type: text/html", "Content-Length: 500") + b"<p>Half a p", "unreached reset"),
    "says-more-than-it-declared": raw(whole(b"<p>Well.") + TWICE, *READ),
    "chunk-of-letters": chunked(b"xyz\r\nabc\r\n0\r\n\r\n"),
    "chunk-below-zero": chunked(b"-1\r\nabc\r\n0\r\n\r\n"),
    "chunk-of-exabytes": chunked(b"FFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n", "unreached reset"),
    "chunk-without-end": chunked(b"5\r\nab", "unreached reset"),
    "encoded-for-the-way-by-nobody-knows-what": raw(head("Transfer-Encoding: flying") + b"abc", *READ),
    "header-without-colon": raw(head("Nothing at all") + b"<p>"),
    "header-of-a-megabyte": raw(head("X-Long: " + "a" * MB) + b"<p>"),
    "headers-without-number": raw(head(*(f"X-{n}: {n}" for n in range(50_000))) + b"<p>"),
    "header-with-nul": raw(b"HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 3\r\n\r\n<p>"),
    "header-folded": raw(b"HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n\tc\r\nContent-Length: 6\r\n\r\n<p>Yes", *READ),
    "interim-answers-without-end": raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 200_000),
    "switches-protocols": raw(head("Upgrade: websocket", status="101 Switching Protocols"), "fetched 101 http_101"),
    "no-content-with-content": raw(whole(b"<p>content", status="204 No Content"), "unreached garbage"),
    "part-unasked": raw(whole(b"<p>part", "Content-Range: bytes 0-6/900", status="206 Partial Content"), "fetched 206"),
    "not-modified-unasked": raw(head(status="304 Not Modified")),
    "accepts-and-is-silent": raw(b"", "unreached deadline", then="hang"),
    "head-then-silence": raw(head("Content-Length: 900"), "unreached deadline", then="hang"),
    "half-a-head-then-silence": raw(b"HTTP/1.1 200 OK\r\nContent-Ty", "unreached deadline", then="hang"),
    "half-a-body-then-silence": raw(head("Content-Length: 900") + b"<p>Half", "unreached deadline", then="hang"),
    "drips": raw(head("Content-Length: 90000"), "unreached deadline", then="drip"),
    "drips-headers": raw(b"HTTP/1.1 200 OK\r\nX-A: ", "unreached deadline", then="drip"),
    "streams-without-end": raw(head("Content-Type: text/html"), "unreached too_large", then="flood"),
    "resets": raw(head("Content-Length: 900") + b"<p>Half", "unreached reset", then="reset"),
}

ENCODINGS: dict[str, Behaviour] = {
    "gzip-bomb": large("gzip", gzip.compress),
    "gzip-bomb-in-a-bomb": large("gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
    "deflate-bomb": large("deflate", zlib.compress),
    "gzip-cut-off": packed("gzip", gzip.compress(WELL.encode() * 99)[:-20], "unreached reset"),
    "gzip-of-noise": packed("gzip", b"\x1f\x8b\x08\x00" + NOISE),
    "gzip-that-is-none": packed("gzip", WELL.encode()),
    "brotli-unasked": packed("br", WELL.encode(), *BROKEN),
    "zstd-unasked": packed("zstd", WELL.encode(), *BROKEN),
    "gzip-untold": raw(whole(gzip.compress(WELL.encode())), *READ),
    "gzip-thirty-times": packed(", ".join(["gzip"] * 30), WELL.encode()),
    "encoding-nobody-knows": packed("rot13", WELL.encode(), *READ),
    "encoding-of-bytes": packed("\xff\xfe", WELL.encode(), *READ),
}

REDIRECTS: dict[str, Behaviour] = {
    "to-itself": redirect("/to-itself", "fetched 302 redirects_to_itself"),
    "to-and": redirect("/fro", "fetched 302 http_302", "fetched 302 redirects_in_a_circle"),
    "fro": redirect("/to-and", "fetched 302 http_302", "fetched 302 redirects_in_a_circle"),
    "to-itself-for-ever": redirect(
        "/to-itself-for-ever", "fetched 301 redirects_to_itself", status="301 Moved Permanently"
    ),
    "to-another-domain": redirect("http://example.com/", "fetched 302 http_302"),
    "to-metadata": redirect("http://169.254.169.254/latest/meta-data/", "fetched 302 http_302"),
    "to-another-port": redirect("http://127.0.0.1:1/", "fetched 302 http_302"),
    "to-a-file": redirect("file:///etc/passwd", "fetched 302 http_302"),
    "to-a-script": redirect("javascript:alert(1)", "fetched 302 http_302"),
    "to-data": redirect("data:text/html,<p>x", "fetched 302 http_302"),
    "to-ftp": redirect("ftp://example.com/", "fetched 302 http_302"),
    "to-nowhere": redirect("", "fetched 302 redirects_to_itself"),
    "to-a-megabyte": redirect("/" + "a" * 60_000),
    "to-bytes": redirect("/\xff\xfe\x80", "fetched 302 http_302"),
    "to-brackets": redirect("http://[::1", "fetched 302 http_302"),
    "to-a-port-too-high": redirect("http://127.0.0.1:99999/", "fetched 302 http_302"),
    "moves-without-saying-where": raw(
        head("Content-Length: 0", status="301 Moved Permanently"), "fetched 301 http_301"
    ),
    "many-choices": raw(whole(b"<p>Which?", status="300 Multiple Choices"), "fetched 300 http_300"),
    "refreshes-itself": raw(html(WELL, "Refresh: 0; url=/refreshes-itself"), *READ),
    "refreshes-to-garbage": raw(html(WELL, "Refresh: " + "9" * 5000 + ";url=//["), *READ),
    "refreshes-in-its-head": page(
        lambda: html(WELL, more='<meta http-equiv=refresh content="0;url=/refreshes-in-its-head">')
    ),
}

BODIES: dict[str, Behaviour] = {
    "empty": raw(whole(b""), *READ),
    "white": raw(whole(b" \n" * 9999), *READ),
    "deep": inside(lambda: "<div>" * 200_000),
    "deep-in-tables": inside(lambda: "<table><tr><td>" * 60_000),
    "deep-in-formats": inside(lambda: "<b><i><u>" * 60_000),
    "deep-in-quotes": inside(lambda: "<blockquote><p>" * 60_000 + "x"),
    "deep-in-links": inside(lambda: "<a href=/1><div>" * 60_000),
    "deep-in-pictures": inside(lambda: "<svg><g>" * 60_000),
    "deep-in-templates": inside(lambda: "<template>" * 60_000),
    "deep-in-lists": inside(lambda: "<ul><li>" * 60_000),
    "900000-paragraphs": inside(lambda: "<p>word" * 900_000),
    "one-line-of-five-megabytes": inside(lambda: "<p>" + "a" * (5 * MB)),
    "five-megabytes-of-words": inside(lambda: "<p>" + "ab " * (5 * MB // 3)),
    "a-million-breaks": inside(lambda: "<br>" * 10**6),
    "a-hundred-thousand-links": inside(lambda: "".join(f"<a href=/made-up/{n}>x</a>" for n in range(100_000))),
    "links-of-a-megabyte": inside(lambda: f"<a href=/{'a' * MB}>x</a>" * 4),
    "links-to-everything": inside(lambda: "".join(f"<a href='{to}'>x</a>" for to in ODD_LINKS) * 1000),
    "one-tag-of-200000-attributes": inside(lambda: "<p " + " ".join(f"a{n}=1" for n in range(200_000)) + ">x"),
    "an-attribute-of-five-megabytes": inside(lambda: f"<p class='{'a' * (5 * MB)}'>x"),
    "a-comment-without-end": inside(lambda: "<p>x<!-- " + "a" * (5 * MB)),
    "a-script-without-end": inside(lambda: "<p>x<script>" + "a" * (5 * MB)),
    "a-title-without-end": page(lambda: whole(b"<title>" + b"a" * (5 * MB))),
    "plaintext": inside(lambda: "<plaintext>" + "</plaintext><p>" * 99_999),
    "open-angles": inside(lambda: "<" * (2 * MB)),
    "ampersands": inside(lambda: "&" * (2 * MB)),
    "entities": inside(lambda: "&amp;&lt;&#x41;&#0;&#xD800;&#x110000;&#99999999999999999999;" * 20_000),
    "laughs": page(
        lambda: whole(
            b"<?xml version='1.0'?><!DOCTYPE l [<!ENTITY a 'ha'>"
            + b"".join(b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 99) for n in range(9))
            + b"]><html><body><p>&j;</p></body></html>",
            kind="application/xhtml+xml",
        )
    ),
    "reads-files": page(
        lambda: whole(
            b"<?xml version='1.0'?><!DOCTYPE l [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><html><body><p>&a;</p></body></html>",
            kind="application/xhtml+xml",
        )
    ),
    "poison": page(lambda: html(f"<h1>{POISON}</h1><p>{POISON}", title=POISON)),
    "only-nuls": raw(whole(b"\x00" * MB), *READ),
    "halves-of-characters": raw(whole(b"<p>" + b"\xed\xa0\x80\xff\xfe\xc0\x80" * 9999), *READ),
    "stacked-accents": inside(lambda: "<p>" + ("e" + "\u0301" * 2000) * 200),
    "right-to-left": inside(lambda: "<p>" + "\u202e\u2066" * 50_000 + "x"),
    "digits-without-end": inside(lambda: f"<p>{'9' * 300_000} 20\uff12\uff16 1{'0' * 5000}.{'0' * 5000}"),
    "times-without-sense": inside(lambda: f"<time datetime='{'9' * 5000}-99-99'>x</time>" * 1000),
    "structured-data-without-end": data("[" * 200_000),
    "structured-numbers": data(f'{{"a":{"9" * 100_000}}}'),
    "canonical-elsewhere": page(lambda: html(WELL, more="<link rel=canonical href=http://example.com/x>")),
    "canonical-garbage": page(lambda: html(WELL, more="<link rel=canonical href='http://[::'>")),
    "canonical-of-a-megabyte": page(lambda: html(WELL, more=f"<link rel=canonical href='/{'c' * MB}'>")),
    "base-elsewhere": page(lambda: html("<a href=x>x</a>", more="<base href=http://169.254.169.254/>")),
    "base-of-eight-kilobytes": page(
        lambda: html("".join(f"<a href={n}>x</a>" for n in range(99_999)), more=f"<base href=/{'b' * 8000}/>"),
        "fetched 200",
        "fetched 200 unreadable",  # depending on the memory of its parser process
    ),
    "base-garbage": page(lambda: html("<a href=x>x</a>", more="<base href='http://[::'><base href=javascript:x>")),
    "language-of-a-megabyte": page(lambda: whole(f"<html lang='{'x' * MB}'><p>{WELL}".encode())),
    "ten-thousand-languages": page(
        lambda: html(WELL, more="".join(f"<link rel=alternate hreflang=x{n} href=/l{n}>" for n in range(10_000)))
    ),
    "charset-nobody-knows": typed(WELL, "text/html; charset=klingon"),
    "charset-of-ten-thousand-letters": typed(WELL, "text/html; charset=" + "x" * 10_000),
    "charset-that-is-a-codec": typed(WELL, "text/html; charset=zlib_codec"),
    "charset-that-is-wrong": typed("<p>Größe", "text/html; charset=utf-16"),
    "charset-in-seven-bits": typed(b"<p>+ADw-script+AD4-", "text/html; charset=utf-7"),
    "two-bytes-a-letter": raw(whole(codecs.BOM_UTF16_LE + WELL.encode("utf-16-le")), *READ),
    "four-bytes-a-letter": raw(whole(codecs.BOM_UTF32_BE + WELL.encode("utf-32-be")), *READ),
    "no-type": raw(head(f"Content-Length: {len(WELL)}") + WELL.encode(), *READ),
    "type-of-ten-thousand-letters": typed(WELL, "x" * 10_000),
    "a-picture-that-says-html": raw(whole(b"\x89PNG\r\n\x1a\n" + NOISE), *READ),
    "html-that-says-picture": typed(WELL, "image/png"),
    "archive-that-says-html": raw(whole(zipped("a", b"0" * MB)), *READ),
    "json": raw(whole(b'{"a": ' * 99_999, kind="application/json"), *READ),
    "javascript": typed(b"for(;;);" * 9999, "text/javascript"),
    "xml-cut-off": typed(b"<?xml version='1.0'?><urlset><url><loc>", "application/xml"),
    "xml-deep": page(lambda: whole(b"<a>" * 200_000, kind="application/xml")),
    "pdf-that-is-none": typed(b"%PDF-1.7\n" + NOISE, "application/pdf"),
    "pdf-in-a-circle": raw(whole(pdf(b"2 0 R"), kind="application/pdf"), *READ),
    "pdf-bomb": page(
        lambda: whole(pdf(b"3 0 R", stream=b"BT /F 1 Tf (a) Tj ET\n" * (4 * MB)), kind="application/pdf"),
        "fetched 200 unreadable",
    ),
    "pdf-that-says-html": raw(whole(pdf(b"3 0 R")), *READ),
}

HEADERS: dict[str, Behaviour] = {
    "tag-of-eight-kilobytes": raw(html(WELL, f'ETag: "{"e" * 8000}"'), *READ),
    "tag-with-quotes": raw(html(WELL, 'ETag: "a"b", W/"c'), *READ),
    "tag-of-bytes": raw(html(WELL, 'ETag: "\xff\xfe"'), *READ),
    "tag-that-is-new-each-time": Behaviour(lambda turn: html(WELL, f'ETag: W/"{turn}"'), READ),
    "tag-that-stays": Behaviour(
        lambda turn: html(f"<p>The body is number {turn} of this page.", 'ETag: "stays"'), READ
    ),
    "date-of-the-year-9999": raw(html(WELL, "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT"), *READ),
    "date-before-time": raw(html(WELL, "Last-Modified: Thu, 01 Jan 0000 00:00:00 GMT", "Date: -1"), *READ),
    "date-of-letters": raw(html(WELL, "Last-Modified: yesterday", "Date: never", "Expires: soon", "Age: old"), *READ),
    "sixty-cookies": raw(html(WELL, *(f"Set-Cookie: c{n}={n}" for n in range(60))), *READ),
    "indexes-nothing": raw(html(WELL, "X-Robots-Tag: none, noindex, " + "x" * 5000), *READ),
    "caches-for-ever": raw(html(WELL, "Cache-Control: max-age=" + "9" * 5000), *READ),
}

STATUSES: dict[str, Behaviour] = {
    "unauthorised": status("401 Unauthorized", "WWW-Authenticate: Basic realm=x"),
    "forbidden": status("403 Forbidden"),
    "missing": status("404 Not Found"),
    "wants-a-proxy": status("407 Proxy Authentication Required"),
    "gone": status("410 Gone"),
    "teapot": status("418 I'm a teapot"),
    "for-lawyers": status("451 Unavailable For Legal Reasons"),
    "fails": status("500 Internal Server Error"),
    "bad-gateway": status("502 Bad Gateway"),
    "wants-a-login": status("511 Network Authentication Required"),
    "comes-and-goes": Behaviour(
        lambda turn: whole(WELL.encode(), status="404 Not Found" if turn == 1 else "200 OK"),
        ("fetched 200", "fetched 404 http_404"),
    ),
    "fails-now-and-then": Behaviour(
        lambda turn: whole(WELL.encode(), status="500 Oops" if turn == 1 else "200 OK"),
        ("fetched 200", "fetched 500 http_500"),
    ),
}

BEHAVIOURS: Mapping[str, Behaviour] = {**WIRE, **ENCODINGS, **REDIRECTS, **BODIES, **HEADERS, **STATUSES}


@dataclass(slots=True)
class HostileServer:
    """The server. turn: the round.  answers: responses of this round, built before it begins, since some take a second.

    Before the first round there are only healthy pages.
    """

    turn: int = 0
    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def begin(self, turn: int) -> None:
        """Respond from now on as in this round."""
        self.turn = turn
        self.answers = {path: await asyncio.to_thread(how.said, turn) for path, how in BEHAVIOURS.items()}

    def healthy(self, n: int) -> bytes:
        words = random.Random(n)
        made = ["".join(words.choices("abcdefghiklmnoprstu", k=7)) for _ in range(80)]
        changed = random.Random(f"{n} {self.turn}" if n < CHANGING else n)
        made += ["".join(changed.choices("abcdefghiklmnoprstu", k=7)) for _ in range(20)]
        return html(f"<h1>Page {made[0]}</h1><p>{' '.join(made)}</p>", "Connection: close")

    def root(self) -> bytes:
        paths = [*self.answers, *(f"well-{n}" for n in range(HEALTHY))]
        return html("".join(f"<p><a href=/{path}>{path}</a></p>" for path in paths), "Connection: close", title="All")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode("latin-1").strip("/")
            if path in self.answers:
                await self.behave(path, reader, writer)
            elif path.startswith("well-"):
                writer.write(self.healthy(int(path.removeprefix("well-"))))
            else:
                writer.write(self.root() if not path else whole(b"<p>No.", status="404 Not Found"))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def behave(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self.answers[path])
        await writer.drain()
        match BEHAVIOURS[path].then:
            case "hang":
                await reader.read()  # until the client has closed
            case "drip":
                gone = asyncio.create_task(reader.read())
                while not gone.done():
                    writer.write(b"a")
                    await asyncio.wait({gone}, timeout=0.05)
                await gone  # a client that resets the connection ends it as well
            case "flood":
                for _ in count():
                    writer.write(b"<p>more " * 10_000)
                    await writer.drain()
            case "reset":
                writer.transport.abort()
            case _:
                pass


@asynccontextmanager
async def hostile_server() -> AsyncIterator[HostileServer]:
    """Run the server on a loopback port until the block ends."""
    site = HostileServer()
    server = await asyncio.start_server(site.serve, "127.0.0.1", next_port())
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
