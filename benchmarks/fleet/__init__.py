"""Several workers on separate hosts, with one Postgres and one Prefect server.

`trial` prints the throughput with one, two and three workers, the cost of a killed worker, and the progress of a crawl
while the Prefect server is down. Hosts are network namespaces if the system allows them.
"""
