"""Commands about domains: domains and rules."""
