"""Hashes of passwords (scrypt, RFC 7914).

The parameters are one of the OWASP recommendations (Password Storage Cheat Sheet): 16 MB and about a quarter of a
second for each check. A hash contains its parameters, so that later versions can change them.
"""

import hashlib
import hmac
import secrets
import unicodedata
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor

N, R, P = 2**14, 8, 5
SALT_BYTES = 16
MIN_CHARS, MAX_CHARS = 12, 256

# For callers with an event loop: one at a time, so that logins can take only one core, and no thread of other work.
HASHER = ThreadPoolExecutor(1, thread_name_prefix="passwords")


def find_password_problem(password: str) -> str:
    """Return why a new password is not accepted; empty if it is."""
    if not MIN_CHARS <= len(password) <= MAX_CHARS:
        return f"a password has {MIN_CHARS} to {MAX_CHARS} characters"
    return "a password needs at least 4 different characters" if len(set(password)) < 4 else ""


def hash_password(password: str) -> str:
    """Return the hash of a password with a random salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    return "$".join(["scrypt", str(N), str(R), str(P), *map(_encode, (salt, _compute(password, salt, N, R, P)))])


def is_correct_password(password: str, stored: str) -> bool:
    """Return whether a password has this hash. Without a hash, it takes as long and returns False."""
    _, n, r, p, salt, expected = (stored or NO_HASH).split("$")
    digest = _compute(password[:MAX_CHARS], b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(digest, b64decode(expected)) and bool(stored)


def _compute(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # The same letters can be typed as different code points.
    text = unicodedata.normalize("NFKC", password).encode("utf-8", "replace")
    return hashlib.scrypt(text, salt=salt, n=n, r=r, p=p, maxmem=2 * 128 * n * r)


def _encode(binary: bytes) -> str:
    return b64encode(binary).decode()


NO_HASH = "$".join(["scrypt", str(N), str(R), str(P), _encode(bytes(SALT_BYTES)), _encode(bytes(64))])
