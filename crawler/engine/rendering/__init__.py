"""Rendering of pages in a browser, under a lease: `PageReader` reads a page, `PageRenderer` renders it.

`page_requests` handles the requests of rendered pages. `crawler.fetch.browser` is imported with the first page that is
rendered, because importing Playwright takes half a second. Uses core, fetch and the engine's parsing.
"""
