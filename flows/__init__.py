"""The Prefect flows, which run recrawl on a schedule."""
