"""Which addresses are allowed."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch import find_refusal
from crawler.fetch.guard import ForbiddenAddressError, look_up, open_socket

PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
    "2002:101:101::1",
    "2a00:1450:4001::5efe:1.1.1.1",
    "2a00:1450:4001::200:5efe:8.8.8.8",
]
PRIVATE = [
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "::1",
    "fc00::1",
    "fdff::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::192.168.1.1",
    "2002:7f00:1::1",
    "2002:c0a8:101::1",
    "2a00:1450:4001::5efe:127.0.0.1",
    "2a00:1450:4001::200:5efe:10.0.0.1",
    "fd00::5efe:192.168.0.1",
    "fd00::5efe:1.1.1.1",
    "2002:101:101::5efe:172.16.0.1",
]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::7f00:1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "64:ff9b:1::1",
    "100::1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "4000::1",
    "2a00:1450:4001::5efe:169.254.169.254",
    "2a00:1450:4001::200:5efe:0.0.0.0",
    "fe80::5efe:1.1.1.1",
    "2002:101:101::5efe:100.100.100.200",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert find_refusal(address, allow_private=False) is None
    assert find_refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_allowed_only_if_the_user_says_so(address: str) -> None:
    assert find_refusal(address, allow_private=False) == "a private address"
    assert find_refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", NEVER)
def test_metadata_and_unroutable_addresses_are_never_allowed(address: str) -> None:
    assert find_refusal(address, allow_private=False) is not None
    assert find_refusal(address, allow_private=True) is not None


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "1.2.3.4.5", "[::1]"])
def test_an_invalid_address_is_refused(text: str) -> None:
    assert find_refusal(text, allow_private=True) == "not an address"


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_no_address_that_python_considers_special_passes(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if find_refusal(str(address), allow_private=False) is None:
        special = (
            address.is_loopback,
            address.is_link_local,
            address.is_multicast,
            address.is_unspecified,
            address.is_private,
        )
        carried = getattr(address, "sixtofour", None) or getattr(address, "ipv4_mapped", None)
        assert carried or not any(special)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_equally_in_every_embedding(address: ipaddress.IPv4Address) -> None:
    plain = find_refusal(str(address), allow_private=False)
    number = int(address)
    for disguise in ((0xFFFF << 32) + number, (0x64FF9B << 96) + number, (0x2002 << 112) + (number << 80)):
        assert find_refusal(str(ipaddress.IPv6Address(disguise)), allow_private=False) == plain


def test_no_socket_is_created_for_a_forbidden_address() -> None:
    info = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 80))
    with pytest.raises(ForbiddenAddressError, match=r"127\.0\.0\.1 is a private address"):
        open_socket(info, allow_private=False)
    open_socket(info, allow_private=True).close()


def test_a_name_that_cannot_be_encoded_does_not_resolve() -> None:
    with pytest.raises(OSError, match="no such name"):
        look_up("a" * 64 + ".example")
