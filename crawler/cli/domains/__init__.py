"""The commands about domains: domains, rules, traffic."""
