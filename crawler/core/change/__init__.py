"""Changes between two versions of a page, and whether they are the page's own.

`judge` decides by digests; `difference` and `significant` by blocks, under the domain's noise mask and without the
site's boilerplate; `update_mask` learns from a comparison; `diff_pages` shows people what changed, word by word. Uses
volatile and what is below it.
"""
