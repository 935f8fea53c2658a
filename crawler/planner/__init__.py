"""What a request is worth: prices for all domains, forecasts for people, audits of what we report.

`plan_domains` solves and writes the prices, `forecast` says what another budget would buy, `audit_domains` draws
pages to look at regardless of their due times, `find_unusual_traffic` says whose last hour was far from its usual. Uses
core, store, settings and clock.
"""
