"""Leases that other processes crawl, once this one has its core to capacity.

`Crew.crawl`, of a crew that is `at_work`, crawls a lease here or has a helper do it, and tells what came of it; whoever
claims and counts leases need not know where they are crawled. `worker_process` is what a helper runs, `Worker` is one
seen from outside, with what they say to each other. Uses what a lease is crawled with; the shift calls it.
"""
