"""Strangers' texts, made harmless for whoever reads them."""

LONGEST_TEXT = 20_000  # characters of a stranger's text on a page
# What would turn the words around it (Unicode 15, 3.4): a text that looks like another one.
REPLACED = "\ufffd"
STEERING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def harmless(text: object) -> str:
    """Return a text without what steers its reader: control characters, and those that turn the direction."""
    return "".join(
        REPLACED if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or ord(c) in STEERING else c
        for c in str(text)[:LONGEST_TEXT]
    )
