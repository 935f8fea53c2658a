"""The tools of all benchmarks: a measured command, a compiled web server, an empty database, a table.

Nothing here depends on what is measured. `measured` returns the time, CPU time and memory of a command and its
children; `Nginx` serves folders and logs requests; `alternating` orders repeats to spread a drift of the machine
evenly.
"""
