"""The local stack of one machine: an embedded Postgres, a Prefect server, a worker and the web UI.

`lifecycle` starts and stops the stack, and `stack` finds its parts. `postgres.cluster` also serves crawls without the
stack. Other packages run services in the foreground (`service`), export metrics, and keep the keys and tokens of
RECRAWL_HOME (`keys`). Import the modules directly, because importing prefect takes a second.
"""
