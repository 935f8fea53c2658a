"""The cost of one page: parsing, fingerprint, decision, duplicates, rendering in a browser."""
