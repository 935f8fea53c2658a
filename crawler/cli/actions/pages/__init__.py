"""Pages: listed, compared version by version, looked at once without a record."""
