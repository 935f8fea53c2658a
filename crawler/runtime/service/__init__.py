"""What runs in the foreground, under whoever starts it again: a container's engine, Kubernetes, systemd.

`deploy` prepares database and Prefect server once, `prefect` serves Prefect, `worker` crawls what that schedules
and ends in good order, `health` tells whether they live. Nothing is embedded and nothing stays; the local stack is for
one machine without any set-up. Modules are offered whole, since prefect takes a second to import. Uses the runtime,
store and settings.
"""
