"""The HTML pages of the web UI."""
