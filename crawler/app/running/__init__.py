"""The local stack, servers, database maintenance and access tokens."""
