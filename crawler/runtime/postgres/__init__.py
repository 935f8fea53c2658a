"""The embedded Postgres: start, stop, backup and restore."""
