"""What every benchmark stands on: a command and what it costs, a compiled web server, an empty database, a table.

Nothing here knows what is measured. `run_command` gives time, processor time and peak memory of a command with all that
it starts; `Nginx` serves folders and tells what it was asked; `alternating` orders repeats so that a drift of the
machine hits all alike.
"""
