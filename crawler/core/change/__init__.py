"""Change detection: compares two versions of a page and decides whether the page itself changed.

`judge_versions` decides by digests and blocks. `compute_difference` and `select_significant` compare blocks under the
domain's noise mask and without the site's boilerplate. `update_mask` learns from each comparison. `diff_pages` renders
the changes word by word for people. This package uses core/noise and core/page.
"""
