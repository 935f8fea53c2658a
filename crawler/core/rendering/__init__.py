"""Rendering: the decision whether a page needs a browser, and the measured gain.

`choose_rendering` decides whether a fetched body is also rendered, based on the signs in its HTML and on earlier
renders of pages with the same URL template. `select_pages_to_render` selects pages that were stored without their
scripts and should be rendered. `compute_gain` measures what a render adds to the page as read without scripts (the
script-free read). Of the other packages of core, this one uses core/http, core/noise and core/page.
"""
