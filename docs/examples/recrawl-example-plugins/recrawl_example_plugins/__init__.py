"""One plugin of each kind for recrawl."""
