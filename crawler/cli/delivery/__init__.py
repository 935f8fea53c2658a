"""Commands that deliver changes and pages to other programs: export, sync, feed, notify, tokens."""
