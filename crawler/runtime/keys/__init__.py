"""What lets its user, and nobody else, into what runs on a machine: keys, tokens, addresses, in files of the home."""
