"""Services that run in the foreground under a supervisor, such as a container engine, Kubernetes or systemd.

`prefect` prepares the database and Prefect server once (`deploy`) and serves Prefect, `worker` runs the scheduled
crawls and shuts down cleanly, and `health` checks the services. They use an external Postgres. On one machine, the
local stack needs no such setup. Import the modules directly, because importing prefect takes a second.
"""
