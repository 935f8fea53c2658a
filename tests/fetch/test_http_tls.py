"""TLS: which certificates are trusted."""

import asyncio
import datetime as dt
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawler.core.http.response import FailureReason, Fetched
from crawler.core.http.urls import Url
from tests.fetch.asking import SOON, http, one, reason
from tests.fetch.server import answer, serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def test_a_trusted_certificate_is_accepted(certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))
    async with serving(tls=tls(certificate)) as server, http(trust=trust, lookup=lambda _: ("127.0.0.1",)) as web:
        server.says("/", answer(b"x"))
        found = await web.fetch(Url(f"https://localhost:{server.port}/"), deadline=SOON)
        wrong_name = await web.fetch(Url(f"https://other.example:{server.port}/"), deadline=SOON)
    assert isinstance(found, Fetched)
    assert reason(wrong_name) is FailureReason.TLS


async def test_an_untrusted_certificate_is_a_tls_finding(certificate: Path) -> None:
    async with serving(tls=tls(certificate)) as server:
        assert reason(await one(Url(f"https://127.0.0.1:{server.port}/"))) is FailureReason.TLS
    assert server.heard == []


async def test_tls_on_a_plain_port_is_a_tls_finding() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    loop = asyncio.get_running_loop()

    async def speak_plainly() -> None:
        taken, _ = await loop.sock_accept(listener)
        await loop.sock_recv(taken, 4096)
        await loop.sock_sendall(taken, b"HTTP/1.1 400 Bad Request\r\n\r\n")
        taken.close()

    with listener:
        async with asyncio.TaskGroup() as both:
            both.create_task(speak_plainly())
            found = await one(Url(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
    assert reason(found) is FailureReason.TLS


async def test_plain_http_on_a_tls_port_is_a_finding(certificate: Path) -> None:
    async with serving(tls=tls(certificate)) as server:
        assert reason(await one(server.url())) in {FailureReason.RESET, FailureReason.GARBAGE}
