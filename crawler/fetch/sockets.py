"""The guard for a process whose libraries open their own sockets: each address is checked when a socket connects."""

import socket
import sys
from ipaddress import ip_address
from typing import Any

from crawler.fetch.guard import ForbiddenAddressError, refusal

# What Python reports before a socket sends something to an address (docs.python.org, "Audit events table").
EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


def guard_sockets(*, allow_private: bool) -> list[str]:
    """Let all sockets of this process reach allowed addresses only, from now on. It cannot be undone.

    Return a list that grows with each refusal, as "127.0.0.1 is a private address": libraries replace the exception.
    allow_private: private and loopback addresses, and Unix sockets, may be reached; cloud metadata never.
    """
    refused: list[str] = []

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or arguments[1] is None:  # a message to where the socket is connected
            return
        opened, address = arguments[:2]
        if opened.family in {socket.AF_INET, socket.AF_INET6}:
            why = refusal(str(address[0]), allow_private=allow_private)
            said = f"{address[0]} is {why}" if why is not None else ""
        else:
            said = "" if allow_private else "a socket of this machine is a private address"
        if said:
            refused.append(said)
            raise ForbiddenAddressError(said)

    sys.addaudithook(check)
    # A name is looked up before the check: Python reports it as it was given, and would look it up afterwards.
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, _with_numeric_address(getattr(socket.socket, name)))
    return refused


def _with_numeric_address(method: Any) -> Any:
    """Return a method of sockets whose last argument is an address, so that it looks up a name in it first."""

    def call(opened: socket.socket, *arguments: Any) -> Any:
        *before, address = arguments
        return method(opened, *before, _numeric(opened, address))

    return call


def _numeric(opened: socket.socket, address: Any) -> Any:
    """Return an address with a numeric host in place of a name. OSError where the name has none."""
    if opened.family not in {socket.AF_INET, socket.AF_INET6}:
        return address
    host, port = address[:2]
    try:
        ip_address(str(host).partition("%")[0])
    except ValueError:
        return socket.getaddrinfo(host, port, family=opened.family, type=opened.type)[0][4]
    return address
