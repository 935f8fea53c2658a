"""The commands that run and maintain recrawl: the local stack, its services, the database, plugins, retention."""
