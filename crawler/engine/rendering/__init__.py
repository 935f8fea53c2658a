"""Pages as a browser shows them, under a lease: `PageReader` reads a page, `PageRenderer` has it rendered.

`page_requests` answers what pages ask for meanwhile. It is imported with the first page that is rendered, since what
drives a browser takes half a second to import. Uses core, web and what the crawl has of readers.
"""
