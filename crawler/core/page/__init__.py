"""What a body says: from bytes to text, links, blocks and a fingerprint.

`read` takes any bytes and never raises: HTML, XML, feeds, JSON, PDF, plain text. `understand` adds the digests by
which two versions are told apart. Uses http alone.
"""

from crawler.core.page.content import Ending, Reading, asks_password_in, ending_of, read
from crawler.core.page.fingerprint import IDEOGRAPHS, Fingerprint, digest, distance_bits, number_of
from crawler.core.page.html import parsed
from crawler.core.page.media_type import kind_of
from crawler.core.page.outline import Outline, Part, Place, left_out, outline
from crawler.core.page.selectors import WHOLE, View, together
from crawler.core.page.snapshot import Snapshot, Understood, Version, understand

__all__ = [
    "IDEOGRAPHS",
    "WHOLE",
    "Ending",
    "Fingerprint",
    "Outline",
    "Part",
    "Place",
    "Reading",
    "Snapshot",
    "Understood",
    "Version",
    "View",
    "asks_password_in",
    "digest",
    "distance_bits",
    "ending_of",
    "kind_of",
    "left_out",
    "number_of",
    "outline",
    "parsed",
    "read",
    "together",
    "understand",
]
