"""Rules for when to look at which page: ours, its rivals, and what one could do who knew the truth."""
