"""Extraction of a page's content: from bytes to text, links, blocks and a fingerprint.

`extract_content` reads any bytes and never raises: HTML, XML, feeds, JSON, PDF, plain text. `build_snapshot` adds the
digests used to compare two versions. This package uses core/http only.
"""
