"""The commands that sum up: report, plan, audit, changes."""
