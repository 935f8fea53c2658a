"""Several workers, each on a host of its own, against one Postgres and one Prefect server.

`trial` prints what comes of it: throughput with one, two and three, what a killed one costs, and what becomes of a
crawl while the Prefect server is away. Hosts are network namespaces where the system lets us make them.
"""
