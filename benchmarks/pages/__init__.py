"""What one page costs: to read, to fingerprint, to decide on, to find duplicates of, to render in a browser."""
