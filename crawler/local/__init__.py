"""One machine, no set-up: an embedded Postgres, a Prefect server and a worker, all in one folder."""
