"""The Prefect server of the local stack, its worker, and calls of its API. Importing prefect takes a second."""
