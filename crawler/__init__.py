"""recrawl, an incremental web crawler that keeps copies of chosen web domains fresh in Postgres."""

__version__ = "0.1.0"  # single source: pyproject.toml, --version and the User-Agent read it
