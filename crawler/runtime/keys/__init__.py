"""Keys, API tokens and feed addresses, in private files of RECRAWL_HOME."""
