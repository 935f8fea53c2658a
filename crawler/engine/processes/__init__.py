"""Worker processes that crawl leases when the main process is busy.

`WorkerPool.crawl` crawls a lease here or in a worker process; `open_worker_pool` opens a pool. `Worker` is the main
process's handle of a worker process, whose program is `worker_process`. Used by the shift.
"""
