"""The Prefect flows, which run recrawl on a schedule. Besides the local stack, only this package uses Prefect."""
