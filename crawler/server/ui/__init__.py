"""The web UI: its pages, as HTML."""
