"""One plugin for each extension point of recrawl."""
