"""Prometheus metrics of crawls, processes, domains and subscriptions.

Each crawling process writes its counts to a file, and the server of the metrics sums up the files (`counting`), so the
counts of finished processes are kept. `endpoint` serves /metrics for Prometheus and /alive for probes, if
RECRAWL_METRICS_PORT is set. Import the modules directly: only `endpoint` and `families` need prometheus_client.
"""
