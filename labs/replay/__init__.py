"""Replay of a recorded site history: the real crawler with a server that shows the site as it was at each time."""
