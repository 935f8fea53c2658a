"""Does a page need a browser, and what has one brought?

`choose_rendering` decides whether a body that was fetched is rendered as well, by the signs in its HTML and by what
renders of pages of its template have brought so far; `select_pages_to_render` names pages that are stored without their
scripts and should be rendered; `compute_gain` says what one render brought beside the script-free read. Uses page and
noise/words.
"""
