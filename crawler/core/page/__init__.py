"""The content of a page: from bytes to text, links, blocks and a fingerprint.

`extract_content` takes any bytes and never raises: HTML, XML, feeds, JSON, PDF, plain text. `parse` adds the digests by
which two versions are told apart. Uses http alone.
"""
