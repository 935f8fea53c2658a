"""Extraction of a page's content: from bytes to text, links, blocks and a fingerprint.

`extract_content` reads any bytes: HTML, XML, feeds, JSON, PDF, plain text. `parse_body` adds the digests used to
compare two versions. Of the other packages of core, this one uses only core/http.
"""
