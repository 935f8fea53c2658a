"""Soft errors: soft 404, login, consent and block pages, truncated bodies, which come with status 200.

`recognise` names the soft error that an answer shows, or None. The evidence is a text that many pages share, the
domain's answer to a not-found probe, and the share of the page's own text that was replaced. Uses change.
"""
