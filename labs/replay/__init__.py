"""Replay of a recorded site history: the real crawler against a server that shows the site as it was at the time."""
