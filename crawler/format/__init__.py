"""Formatting of values, reasons and kinds of changes for users, shared by all surfaces. Never prints."""
