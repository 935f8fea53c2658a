"""What is run by people and by make, from a checkout; no part of the product."""
