"""What runs on a machine: the local stack, servers, the database as a whole, and who may use them."""
