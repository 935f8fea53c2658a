"""Tunnels through an http proxy (CONNECT, RFC 9110, 9.3.6): to an address that was resolved and checked here.

The proxy is told an address, never a name, so that it cannot look up another one than was checked. That goes for http
as for https: asked in the other way, with the whole URL, a proxy goes by the name (RFC 9112, 3.2.2).
"""

import asyncio
import re
import socket
from dataclasses import dataclass, field

import aiohttp

from crawler.core.http.credentials import basic

MOST_HEAD = 16 * 1024  # bytes of the proxy's answer
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")


class ProxyError(aiohttp.ClientError):
    """The proxy cannot be reached, or opens no tunnel. The message tells no credentials."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An http proxy, and what it is shown."""

    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    async def tunnel(self, connected: socket.socket, address: str, port: int) -> None:
        """Have the proxy at the other end of a connection pass on what comes to an address. Raises ProxyError."""
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self.user or self.password:
            lines.append(f"Proxy-Authorization: {basic(self.user, self.password)}")
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connected, "\r\n".join([*lines, "", ""]).encode())
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            # One by one: what follows belongs to whoever is behind the proxy.
            byte = await loop.sock_recv(connected, 1)
            head += byte
            if not byte or len(head) > MOST_HEAD:
                raise ProxyError("the proxy hangs up, or gives no answer that is HTTP")
        status = _STATUS.match(bytes(head))
        if status is None:
            raise ProxyError("the proxy gives no answer that is HTTP")
        if status[1] == b"407":
            raise ProxyError("the proxy asks for other credentials (status 407)")
        if not status[1].startswith(b"2"):
            raise ProxyError(f"the proxy opens no tunnel (status {status[1].decode()})")
