"""Whether ETag, Last-Modified and HEAD may be believed.

Validators are put to the test by challenges: full looks in spite of them. `validators_to_send` says which may be sent,
`head_shows_same` what a HEAD decides. The topmost room of core: it may use all others.
"""
