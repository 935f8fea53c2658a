"""Small PDFs, built according to the standard (ISO 32000-1, 7.5)."""

import zlib
from collections.abc import Sequence

Line = tuple[float, float, str]  # distances from the left and the bottom in points, and the text

FONT, CATALOG, PAGES, INFO, NAMES = 1, 2, 3, 4, 5  # object numbers
PAGE = b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Annots[%s]/Resources<</Font<</F %d 0 R>>>>>>"


def printed(
    *pages: Sequence[Line], title: str = "", links: Sequence[str] = (), names: bytes = b"", trailer: bytes = b""
) -> bytes:
    """Return a PDF with these lines on its pages, in 10-point Helvetica.

    links: on every page.  names: a map from the font's characters to others.  trailer: additional entries of it.
    """
    notes = b"".join(b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(%s)>>>>" % to.encode() for to in links)
    numbers = range(NAMES + 1, NAMES + 1 + 2 * len(pages), 2)
    objects = [
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode %d 0 R>>" % NAMES,
        b"<</Type/Catalog/Pages %d 0 R>>" % PAGES,
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), b" ".join(b"%d 0 R" % number for number in numbers)),
        b"<</Title<%s>>>" % title.encode("utf-16").hex().encode(),
        compressed(b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange %s endcmap" % names),
    ]
    for number, lines in zip(numbers, pages, strict=True):
        content = compressed(b"BT /F 10 Tf %s ET" % b" ".join(map(shown, lines)))
        parts = (PAGES, number + 1, notes, FONT)
        objects += [PAGE % parts, content]
    return filed(objects, trailer=trailer)


def shown(line: Line) -> bytes:
    left, bottom, words = line
    return b"1 0 0 1 %g %g Tm <%s> Tj" % (left, bottom, words.encode("cp1252").hex().encode())


def compressed(content: bytes) -> bytes:
    data = zlib.compress(content)
    return b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(data), data)


def filed(objects: Sequence[bytes], *, trailer: bytes = b"") -> bytes:
    """Return a file of objects numbered from 1, with their offsets."""
    body = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    count = len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    xref = b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
    end = b"trailer\n<</Size %d/Root %d 0 R/Info %d 0 R%s>>\n" % (count, CATALOG, INFO, trailer)
    return b"%sstartxref\n%d\n%%%%EOF" % (body + xref + end, len(body))
