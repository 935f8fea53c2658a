"""The commands that hand changes and pages on: export, sync, feed, notify, tokens."""
