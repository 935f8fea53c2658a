"""What is kept of the past: versions are thinned out, visits packed, changes forgotten; and what all of it takes.

Each function does one chunk, or says what the next one is; crawler/prune.py goes through them. The last
room of the store; it uses the files beside the rooms alone.
"""
