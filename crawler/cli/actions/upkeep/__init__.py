"""Keeping the store: dumps, retention, SQL, plugins."""
