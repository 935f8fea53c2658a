"""One machine without any set-up: an embedded Postgres, a Prefect server and a worker, found again and ended.

`up`, `down` and `stack` are what the command calls; `postgres` serves a plain crawl. Modules are offered whole, since
importing prefect takes a second. Uses core, store and settings.
"""
