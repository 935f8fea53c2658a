"""One machine without any set-up: an embedded Postgres, a Prefect server and a worker, found again and ended.

`up`, `down` and `stack` are what the command calls; `postgres.cluster` serves a plain crawl. Beneath them stand three
rooms: `postgres`, `prefect`, and `keys`, which say who is let in. Modules are offered whole, since importing
prefect takes a second. Uses core, store and settings.
"""
