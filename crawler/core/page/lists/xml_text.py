"""XML and feeds (RSS 0.9 to 2.0, Atom) as text; for feeds, also the links, and the text without the file's metadata."""

from html.entities import html5
from xml.parsers import expat

from msgspec import Struct, field

from crawler.core.http.urls import Url
from crawler.core.page.document import Document, collapse_lines
from crawler.core.page.lists.url_list import read_list_text

MAX_DEPTH = 200  # feeds have five levels, documents for print thirty

_FEEDS = frozenset({"rss", "feed", "RDF"})
_CONTAINERS = frozenset({"channel", "feed"})
# Elements about the file itself: its time of creation and its program.
_FILE_ELEMENTS = frozenset({"lastBuildDate", "pubDate", "updated", "date", "generator", "ttl"})


class _RejectedError(Exception):
    """Raised if the XML declares entities, which can multiply, or is nested too deeply."""


def read_xml(source: str, *, url: Url) -> Document:
    """Read XML as one line per text between two tags, and one per attribute. Never raises.

    Comments, processing instructions and the order of attributes are ignored. Nothing is fetched. A file that is not
    well-formed is parsed up to the error, and its source is read line by line from there. A file that declares
    entities, or is nested deeper than MAX_DEPTH, is read as source from the start.
    """
    content = source.lstrip("\ufeff \t\r\n").encode("utf-8", "replace")
    parser = expat.ParserCreate("utf-8")  # overrides any declaration, because the text is decoded already
    parser.buffer_text = True
    parser.UseForeignDTD(True)  # noqa: FBT003  without a DTD, entities such as &nbsp; are skipped, not errors
    reader = _Reader(parser)
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.SkippedEntityHandler = reader.texts.append, reader.add_entity
    parser.EntityDeclHandler = reader.reject
    try:
        parser.Parse(content, True)  # noqa: FBT003  its only form
    except _RejectedError:
        return Document(text=collapse_lines(source.splitlines()))
    except expat.ExpatError:
        reader.add(content[reader.at_byte :].decode("utf-8", "replace").splitlines())
    entries = read_list_text(iter((source,)), url=url).entries if reader.is_feed else ()
    main = collapse_lines(reader.main) if len(reader.main) < len(reader.lines) else None
    return Document(reader.title, collapse_lines(reader.lines), main, tuple(entry.url for entry in entries))


class _Reader(Struct):
    """The state of the XML reader.

    names: the open elements, starting at the root.  main: the lines without metadata of the file.
    at_byte: the position of the last tag; everything before that tag is in the lines.  texts: the text since that tag.
    """

    parser: expat.XMLParserType
    at_byte: int = 0
    title: str = ""
    is_feed: bool = False
    lines: list[str] = field(default_factory=list)
    main: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.names) == MAX_DEPTH:
            raise _RejectedError
        self.flush()
        self.names.append(name.rpartition(":")[2])
        self.is_feed = self.is_feed or self.names[0] in _FEEDS
        self.add([f"{key}: {value}" for key, value in sorted(attributes.items()) if not key.startswith("xmlns")])

    def end(self, _name: str) -> None:
        text = self.flush()
        name = self.names.pop()
        if text and self.is_feed and name == "title" and self.names and self.names[-1] in _CONTAINERS:
            self.title = self.title or text

    def add_entity(self, entity: str, is_parameter: bool) -> None:  # noqa: FBT001  expat's signature
        if not is_parameter:
            self.texts.append(html5.get(f"{entity};", f"&{entity};"))

    def reject(self, *_declaration: object) -> None:
        raise _RejectedError

    def flush(self) -> str:
        """Add the text since the last tag as a line, and return it."""
        self.at_byte = self.parser.CurrentByteIndex
        text = " ".join("".join(self.texts).split())
        self.texts.clear()
        if text:
            is_about_file = len(self.names) > 1 and self.names[-1] in _FILE_ELEMENTS and self.names[-2] in _CONTAINERS
            self.add([text], is_main=not (is_about_file and self.is_feed))
        return text

    def add(self, lines: list[str], *, is_main: bool = True) -> None:
        self.lines += lines
        self.main += lines if is_main else ()
