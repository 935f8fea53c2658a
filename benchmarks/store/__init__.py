"""What the tables cost: claims and records in domains of any size, filled by SQL as a crawl would have left them."""
