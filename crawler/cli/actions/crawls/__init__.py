"""Crawling as the command does it: now, in a preview, what is made due, what others left, and the demo."""
