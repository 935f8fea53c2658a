"""Figures for Prometheus: what the crawling processes of a machine have counted, what they use, how the domains are.

A crawling process counts into a file of its own (`counted`); whoever serves adds the files up (`totals`), so
that several processes are one, and those that have ended stay counted. `served.serving` answers on a port of its own,
`/metrics` to Prometheus and `/alive` to probes. Off unless RECRAWL_METRICS_PORT is set. Modules are offered whole:
only who serves needs prometheus_client. Uses core, crawl's counts, local, store and settings.
"""
