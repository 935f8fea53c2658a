"""Rules for when to visit which page: the product's, those of other crawlers, and rules that know the truth."""
