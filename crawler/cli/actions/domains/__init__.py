"""Domains: registered, set, listed; their rules, URL lists, validators and traffic in words."""
