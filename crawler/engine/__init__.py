"""WALKS: one shift, one lease, one page at a time through the rooms.

`run_shift` claims domains and crawls several at once; `crawl_lease` crawls one and gives it back, whatever happens; the
coordinator's head tells how the parts work together. `try_page` is one look that records nothing, `diff_versions` reads
two stored versions of a page again. A `PacedServer` is how anybody here or in registration asks the web. Uses core,
web, store, settings and clock; the command, the flows and registration call it.
"""
