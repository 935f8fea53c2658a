"""Values, reasons and kinds of changes as people read them, the same on every surface. Never prints."""
