"""Commands that run and maintain recrawl: the local stack, services, the database, plugins and retention."""
