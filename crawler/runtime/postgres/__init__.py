"""The embedded Postgres: found, started for whoever needs it, ended, dumped and restored."""
