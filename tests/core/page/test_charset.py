"""Charset detection according to the HTML standard."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.page.charset import decode_body, find_codec

HTML = "text/html"
RUSSIAN = "Привет"


def charset_of(page: str, content_type: str = HTML, kind: str = "html") -> str:
    """Return the detected charset of a page that is encoded in KOI8-R."""
    return decode_body(f"{page}<p>{RUSSIAN}".encode("koi8-r"), content_type, kind)[0]


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        ("\ufeff<meta charset=koi8-r>ä".encode(), "text/html; charset=windows-1251", "utf-8"),
        ("<meta charset=koi8-r>ä".encode("cp1251", "replace"), "text/html; charset=windows-1251", "cp1251"),
        ("<meta charset=koi8-r>ä".encode(), HTML, "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><meta charset=windows-1251>", HTML, "cp1251"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html>", HTML, "koi8-r"),
        ("ä".encode(), HTML, "utf-8"),
    ],
    ids=["mark", "header", "meta", "meta before the declaration", "declaration", "bytes"],
)
def test_first_declaration_of_a_charset_wins(body: bytes, content_type: str, charset: str) -> None:
    assert decode_body(body, content_type, "html")[0] == charset


@pytest.mark.parametrize(
    "page",
    [
        "<meta charset=koi8-r>",
        "<META CharSet = 'KOI8-R' >",
        "<meta/charset=koi8-r/>",
        '<meta name=x content="y"charset="koi8-r">',
        "<meta charset=' koi8-r\t'>",
        "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>",
        "<meta content='text/html; charset=koi8-r' http-equiv=content-type>",
        "<meta http-equiv=content-type content='charset = \"koi8-r\"; x'>",
        "<meta http-equiv=content-type content='charset; charset=koi8-r;x'>",
        "<meta charset=koi8-r charset=utf-8>",
        "<meta http-equiv=content-type content='x; charset=utf-8' charset=koi8-r>",
        "<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
        "<!--><meta charset=koi8-r><!-- -->",
        "<p title='<meta charset=utf-8>'><meta charset=koi8-r>",
        "<a href=x><b a='>'/></b ><meta charset=koi8-r>",
        "<! <meta charset=utf-8><? <meta charset=utf-8><meta charset=koi8-r>",
        "<meta charset=nonsense><meta charset=koi8-r>",
        "<script>" + " " * 2000 + "</script><meta charset=koi8-r>",
    ],
)
def test_meta_element_declares_the_charset(page: str) -> None:
    assert charset_of(page) == "koi8-r"
    assert RUSSIAN in decode_body(f"{page}<p>{RUSSIAN}".encode("koi8-r"), HTML, "html")[1]


@pytest.mark.parametrize(
    "page",
    [
        "<!-- <meta charset=windows-1251> -->",
        "<!-- <meta charset=windows-1251>",
        "<metal charset=windows-1251>",
        "<meta content='text/html; charset=windows-1251'>",
        "<meta http-equiv=refresh content='0; charset=windows-1251'>",
        "<meta http-equiv=content-type content='charset=\"windows-1251'>",
        "<meta charset=utf-7>",
        "<a title='<meta charset=windows-1251>'>",
        " " * 5000 + "<meta charset=windows-1251>",
        " <?xml version='1.0' encoding='windows-1251'?>",
    ],
)
def test_text_that_resembles_a_declaration_is_ignored(page: str) -> None:
    assert charset_of(page) != "cp1251"
    assert charset_of(page) != "utf-7"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("utf-16", "utf-8"),
        ("UTF-16BE", "utf-8"),
        ("unicode", "utf-8"),
        ("x-user-defined", "cp1252"),
        ("ascii", "cp1252"),
    ],
)
def test_unusable_label_is_mapped_to_another_charset(label: str, name: str) -> None:
    assert charset_of(f"<meta charset={label}>") == name
    assert charset_of(f"<?xml version='1.0' encoding='{label}'?>", "text/xml", "xml") == name


def test_header_may_name_utf_16() -> None:
    assert decode_body("ä".encode("utf-16-be"), "text/html; charset=utf-16be", "html") == ("utf-16-be", "ä")
    assert decode_body("ä".encode("utf-16-le"), "text/html; charset=utf-16", "html") == ("utf-16-le", "ä")


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_declaration_in_wide_characters_shows_the_byte_order(name: str) -> None:
    source = "<?xml version='1.0' encoding='utf-16'?><a>ä</a>"
    assert decode_body(source.encode(name), "text/xml", "xml") == (name, source)


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        ("text/html;charset=koi8-r", "koi8-r"),
        ('TEXT/HTML; x=y; CHARSET="koi8-r"; z', "koi8-r"),
        ("text/html; charset=koi8-r; charset=utf-8", "koi8-r"),
        ("text/html; charset=", "utf-8"),
        ("text/html; x-charset=koi8-r", "utf-8"),
        ("charset=koi8-r", "koi8-r"),
    ],
)
def test_header_is_parsed_as_servers_write_it(content_type: str, charset: str) -> None:
    assert decode_body(b"plain", content_type, "text")[0] == charset


@pytest.mark.parametrize("declared", ["<meta charset=iso-2022-jp>", ""])
def test_seven_bit_japanese_is_not_read_as_ascii(declared: str) -> None:
    text = f"{declared}<p>今日は、カタカナ｡"
    assert decode_body(text.encode("iso2022_jp_ext"), HTML, "html") == ("iso2022_jp_ext", text)


def test_plain_text_declares_no_charset() -> None:
    assert decode_body(b"<meta charset=koi8-r>", "text/plain", "text")[0] == "utf-8"


@pytest.mark.parametrize("label", ["utf-7", "utf-32", "hz-gb-2312", "iso-2022-kr", "rot13", "hex", "idna", "", "\0"])
def test_labels_outside_the_standard_are_ignored(label: str) -> None:
    assert find_codec(label) is None


def test_mac_cyrillic_is_known() -> None:
    assert decode_body(RUSSIAN.encode("mac-cyrillic"), "text/html; charset=x-mac-cyrillic", "html")[1] == RUSSIAN


scraps = st.sampled_from(
    [
        b"<meta ",
        b"charset=",
        b"'",
        b'"',
        b">",
        b"<!--",
        b"-->",
        b"utf-16",
        b"=",
        b"/",
        b" ",
        b"content=",
        b"\x1b$B",
        b"a",
    ]
)


@given(
    st.one_of(st.lists(scraps, max_size=40).map(b"".join), st.binary(max_size=100)),
    st.sampled_from(["html", "xml", ""]),
)
def test_any_bytes_are_decoded(body: bytes, kind: str) -> None:
    charset, text = decode_body(body, "", kind)
    assert codecs.lookup(charset)
    text.encode()
