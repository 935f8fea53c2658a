"""When to run: the only code, beside the local stack's, that knows Prefect."""
