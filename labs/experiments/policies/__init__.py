"""Rules for when to visit which page: ours, its rivals, and rules that know the truth."""
