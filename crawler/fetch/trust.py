"""Whose certificates are believed, where a domain's user says otherwise than the machine."""

import ssl


def trust_of(*, ca_file: str = "", insecure: bool = False) -> ssl.SSLContext | None:
    """The certificates of a file and no others, or none that is asked for; None: those that the machine believes.

    OSError for a file that cannot be read, or holds no certificate (ssl.SSLError).
    """
    if insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=ca_file) if ca_file else None
