"""Change detection: compares two versions of a page and decides whether the page itself changed.

`judge_versions` decides by digests and blocks. `compute_difference` and `select_significant` compare blocks under the
domain's noise mask and without the site's boilerplate. `update_mask` learns from each comparison. `diff_pages` shows
the changes word by word for people. Of the other packages of core, this one uses core/http, core/noise and core/page.
"""
