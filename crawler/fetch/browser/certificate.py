"""A certificate for the loopback proxy, made anew in each process and believed by its own browser alone."""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=30)


@cache
def server_context() -> ssl.SSLContext:
    """TLS of the proxy's side towards the browser, for whatever host it asks for; HTTP/1.1 alone.

    It proves nothing: the browser is told to believe any certificate, since what it reaches is only ever this proxy,
    which checks the certificate of the real server as for every other request.
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
        .not_valid_after(now + LIFETIME)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        pem = Path(folder, "own.pem")
        pem.touch(mode=0o600)
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(pem)
    context.set_alpn_protocols(["http/1.1"])
    return context
