"""Decide which addresses may be connected to, and enforce it.

The HTTP client is guarded where names are resolved and where sockets are created. A process whose libraries open their
own sockets is guarded where sockets connect.
"""

import socket
import sys
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from crawler.core.http.addresses import is_private_address

Lookup = Callable[[str], Sequence[str]]  # returns a host's addresses; blocks; raises OSError if it has none
AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]

NOT_AN_ADDRESS = "not an address"
PRIVATE = "a private address"
# Audit events before a socket sends something to an address (docs.python.org, "Audit events table").
SOCKET_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})

# Never allowed, not even with --allow-private: these addresses serve no sites, but some serve the credentials of cloud
# machines (metadata services), and 0.0.0.0 is an alias of loopback. Source: IANA special-purpose registries.
_NEVER_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "100.100.100.200/32",  # metadata service of Alibaba Cloud
        "169.254.0.0/16",  # link-local, and metadata services of most clouds
        "192.0.0.0/24",  # protocol assignments, and metadata service of Oracle Cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_METADATA_6 = IPv6Address("fd00:ec2::254")  # of AWS
_GLOBAL_6 = IPv6Network("2000::/3")  # all global unicast addresses assigned so far
# Protocol assignments (Teredo, benchmarks, ORCHID), and two networks for documentation.
_NEVER_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")  # IPv4 addresses as seen from an IPv6-only network
# ISATAP (RFC 5214, 6.1) puts an IPv4 address after 0:5efe, or after 200:5efe if the address is globally unique.
_ISATAP = 0x00005EFE
_WITHOUT_UNIVERSAL_BIT = 0xFDFFFFFF


class ForbiddenAddressError(OSError):
    """An address is not allowed; raised before anything is sent to it."""


def find_refusal(address: str, *, allow_private: bool) -> str | None:
    """Return why an address is not allowed, as a phrase, or None if it is allowed.

    address: an IP literal without brackets; a scope ("%eth0") is ignored. Anything else is refused.
    An IPv6 address that embeds an IPv4 address (mapped, 6to4, NAT64) is judged by the embedded one, ISATAP by both.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return NOT_AN_ADDRESS
    addresses = _extract_embedded(parsed) if isinstance(parsed, IPv6Address) else (parsed,)
    return next(filter(None, (_judge_address(each, allow_private=allow_private) for each in addresses)), None)


def _judge_address(address: IPv4Address | IPv6Address, *, allow_private: bool) -> str | None:
    if isinstance(address, IPv4Address):
        is_forbidden = any(address in network for network in _NEVER_4)
        is_private = is_private_address(address)
    else:
        is_private = address != _METADATA_6 and is_private_address(address)
        is_forbidden = not is_private and (address not in _GLOBAL_6 or any(address in network for network in _NEVER_6))
    if is_forbidden:
        return "an address that serves no websites"
    if is_private and not allow_private:
        return PRIVATE
    return None


def look_up(host: str) -> tuple[str, ...]:
    """Return a host's addresses from the system's resolver, in its order. Blocks. Raise OSError if there are none."""
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that the IDNA codec rejects
        raise socket.gaierror(socket.EAI_NONAME, "no such name") from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in infos))


def open_socket(info: AddressInfo, *, allow_private: bool) -> socket.socket:
    """Create a socket for one address. Raise ForbiddenAddressError if it is not allowed.

    Each new direct connection passes here with its final address: also IP literals, for which nothing is resolved, and
    hosts that resolve to a different address than before.
    """
    family, kind, protocol, _, address = info
    reason = find_refusal(str(address[0]), allow_private=allow_private)
    if reason is not None:
        raise ForbiddenAddressError(f"{address[0]} is {reason}")
    return socket.socket(family=family, type=kind, proto=protocol)


def _extract_embedded(address: IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    """Return the addresses by which an address is judged: the embedded one, itself, or for ISATAP both."""
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    network = address if address.sixtofour is None else address.sixtofour
    if int(address) >> 32 & _WITHOUT_UNIVERSAL_BIT == _ISATAP:  # the embedded address is reached through the network
        return network, IPv4Address(int(address) & 0xFFFFFFFF)
    return (network,)


def guard_sockets(*, allow_private: bool) -> list[str]:
    """Restrict all sockets of this process to allowed addresses, permanently.

    Return a list to which each refusal is appended, such as "127.0.0.1 is a private address", because libraries replace
    the exception. allow_private: allow private and loopback addresses and Unix sockets, but never cloud metadata.
    """
    refusals: list[str] = []

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in SOCKET_EVENTS or arguments[1] is None:  # no address: a message on a connected socket
            return
        sock, address = arguments[:2]
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            reason = find_refusal(str(address[0]), allow_private=allow_private)
            message = f"{address[0]} is {reason}" if reason is not None else ""
        else:
            message = "" if allow_private else "a Unix socket is a private address"
        if message:
            refusals.append(message)
            raise ForbiddenAddressError(message)

    sys.addaudithook(check)
    # Resolve names before the check: audit events contain the name, and Python would resolve it only afterwards.
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, _wrap_with_lookup(getattr(socket.socket, name)))
    return refusals


def _wrap_with_lookup(method: Any) -> Any:
    """Wrap a socket method whose last argument is an address, so that it resolves the host first."""

    def call(sock: socket.socket, *arguments: Any) -> Any:
        *leading, address = arguments
        return method(sock, *leading, _resolve_to_numeric(sock, address))

    return call


def _resolve_to_numeric(sock: socket.socket, address: Any) -> Any:
    """Return the address with a numeric host. Raise OSError if the host has no address."""
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return address
    host, port = address[:2]
    try:
        ip_address(str(host).partition("%")[0])
    except ValueError:
        return socket.getaddrinfo(host, port, family=sock.family, type=sock.type)[0][4]
    return address
