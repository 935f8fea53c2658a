"""TELLS: changes to those who have asked for them, as they come into the feed: by mail, chat, webhook or command.

`deliver` reads the feed for each subscription from where it was read last, and sends what is due; a target that is slow
or dead holds up no other. `check_target` is how a target is typed, `send_test` tries one. What is sent is worded in
`wording`, and put into a form that programs read in `payload`; `render_atom_feed` is the same for feed readers. Secrets
are found when something is sent, and kept nowhere. Uses core, web, store and crawl; the command, flows and pages call
it.
"""
