"""The browser's only way to the network: a loopback proxy that handles its requests with the crawler's HTTP client.

All requests of a page, whether from redirects, frames, workers or scripts, become requests of the crawler. Therefore
the proxy terminates TLS itself and rejects what is not HTTP (WebSockets, QUIC, other data in a tunnel). Each tab has a
separate listener, so it is known which tab sent a request.

Every user of the machine can connect to the listener. It accepts a request or opens a tunnel only with the tab's
password (Proxy-Authorization, RFC 9110, 11.7.1), which only the browser gets (see browser.py).
"""

import asyncio
import hmac
import secrets
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import h11
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawler.core.http.response import BrowserRequest, BrowserResponse
from crawler.core.http.urls import Url

USERNAME = "tab"
LOGIN_URL = Url("http://recrawl.invalid/")  # no site (RFC 6761, 6.4): the proxy itself responds with an empty page
HEAD_SECONDS = 10  # time for the first request head of a connection, which must contain the password
MAX_UNAUTHENTICATED = 64  # connections without a password yet; then the oldest is closed, to save file descriptors

HOP_BY_HOP = {  # RFC 9110, 7.6.1
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
}
_CHALLENGE = (
    b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="tab"\r\n'
    b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)


# Returns the response to one request of a page. It may take long, and never raises because of the web.
HandleRequest = Callable[[BrowserRequest], Awaitable[BrowserResponse]]


class LoopbackProxy:
    """A listener for the requests of one tab.

    handle_request: returns the response to a request.  in_flight: number of requests being handled.
    password: required in each request outside of a tunnel.  refusals: number of requests without it.
    challenges: number of responses with status 401, for which the browser may store another password.
    """

    def __init__(self, handle_request: HandleRequest) -> None:
        self._handle_request = handle_request
        self.in_flight = self.refusals = self.challenges = 0
        self.port = 0
        self.password = secrets.token_urlsafe(32)
        self._authorization = b"Basic " + b64encode(f"{USERNAME}:{self.password}".encode())
        self._connections: set[asyncio.Task[None]] = set()
        self._unauthenticated: dict[asyncio.Task[None], None] = {}  # the oldest first

    @asynccontextmanager
    async def listen(self) -> AsyncIterator["LoopbackProxy"]:
        """Listen on a free loopback port until the block ends, then close every connection."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for each in list(self._connections):
                each.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = _get_current_task()
        self._connections.add(task)
        if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
            oldest = next(iter(self._unauthenticated))
            del self._unauthenticated[oldest]
            oldest.cancel()
        self._unauthenticated[task] = None
        try:
            await self._serve_connection(reader, writer)
        except (OSError, ValueError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the client disconnected, sent no HTTP or no password in time, or the tab was closed
        finally:
            self._connections.discard(task)
            self._unauthenticated.pop(task, None)
            writer.close()

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle the requests of one connection. Each must contain the password, except those in a tunnel."""
        connection = h11.Connection(h11.SERVER)
        async with asyncio.timeout(HEAD_SECONDS) as head:
            while True:
                request = await _read_request(connection, reader)
                if request is None:
                    return
                authorization = next((value for name, value in request.headers if name == b"proxy-authorization"), b"")
                if not hmac.compare_digest(authorization, self._authorization):
                    self.refusals += 1
                    writer.write(_CHALLENGE)
                    await writer.drain()
                    return
                head.reschedule(None)
                self._unauthenticated.pop(_get_current_task(), None)
                if request.method == b"CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await writer.drain()
                    await writer.start_tls(build_server_context())
                    await self._serve_tunnel(reader, writer, request.target.decode("ascii"))
                    return
                if b"://" not in request.target:
                    return  # a client that takes this for a web server
                url = Url(request.target.decode("ascii"))
                response = BrowserResponse(200) if url == LOGIN_URL else await self._respond(request, url)
                if not await _send_response(connection, writer, response, request):
                    return

    async def _serve_tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str) -> None:
        """Handle the requests in a TLS tunnel. authority: the destination of the tunnel."""
        connection = h11.Connection(h11.SERVER)
        while (request := await _read_request(connection, reader)) is not None and request.method != b"CONNECT":
            url = Url(f"https://{authority.removesuffix(':443')}{request.target.decode('ascii')}")
            if not await _send_response(connection, writer, await self._respond(request, url), request):
                return

    async def _respond(self, request: h11.Request, url: Url) -> BrowserResponse:
        forwarded = [(name, value) for name, value in request.headers if name != b"proxy-authorization"]
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in forwarded)
        self.in_flight += 1
        try:
            response = await self._handle_request(BrowserRequest(url, request.method.decode("ascii"), headers))
            self.challenges += response.status == 401
            return response
        finally:
            self.in_flight -= 1


def _get_current_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def _send_response(
    connection: h11.Connection, writer: asyncio.StreamWriter, response: BrowserResponse, request: h11.Request
) -> bool:
    """Send a response; return whether the connection takes another request."""
    for event in _build_events(response, is_head=request.method == b"HEAD"):
        writer.write(connection.send(event) or b"")
    await writer.drain()
    if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
        return False
    connection.start_next_cycle()
    return True


async def _read_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """Read the next request of a connection and drop its body; return None if the connection ends or must end."""
    request: h11.Request | None = None
    body_bytes = 0
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                connection.receive_data(await reader.read(64 << 10))
            case h11.Request():
                request = event
                if request.method == b"CONNECT":
                    return request
            case h11.Data():
                body_bytes += len(event.data)
                if body_bytes > 64 << 10:
                    return None
            case h11.EndOfMessage():
                return request
            case _:  # the connection is closed, or switches to another protocol
                return None


def _build_events(response: BrowserResponse, *, is_head: bool) -> list[h11.Event]:
    unsent = HOP_BY_HOP | {"content-length"}
    kept = [(name, value) for name, value in response.headers if name.lower() not in unsent]
    headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in kept]
    bodiless = is_head or response.status in {204, 304}
    if not bodiless:
        headers.append((b"content-length", str(len(response.body)).encode()))
    start = h11.Response(status_code=response.status, headers=headers, reason=b"")
    data = [] if bodiless or not response.body else [h11.Data(data=response.body)]
    return [start, *data, h11.EndOfMessage()]


@cache
def build_server_context() -> ssl.SSLContext:
    """Build the TLS context for connections from the browser, for any host, with HTTP/1.1 only.

    Its certificate proves nothing: the browser accepts any certificate, because it only ever connects to this proxy.
    The HTTP client checks the certificate of the real server.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "recrawl's own proxy")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        pem, form = Path(folder, "own.pem"), serialization.Encoding.PEM
        pem.touch(mode=0o600)
        own_key = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        pem.write_bytes(own_key + certificate.public_bytes(form))
        context.load_cert_chain(pem)
    context.set_alpn_protocols(["http/1.1"])
    return context
