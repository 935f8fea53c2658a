"""Commands that report on domains: report, traffic, plan, audit, changes."""
