"""Private network addresses. Requests to them need the user's permission."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# Listed here because Python's is_private and is_global changed between patch versions (CVE-2024-4032).
# 100.64.0.0/10 is carrier-grade NAT (RFC 6598).
_NETWORKS = "10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7"
PRIVATE_NETWORKS = tuple(map(ip_network, _NETWORKS.split()))


def is_private(address: str) -> bool:
    """Return whether a text is a private address. False if it is not an address."""
    try:
        return is_private_address(ip_address(address.partition("%")[0]))
    except ValueError:
        return False


def is_private_address(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in PRIVATE_NETWORKS)
