"""Planning: shadow prices of all domains, forecasts, audits and the traffic monitor.

`plan_domains` computes and writes the shadow prices. `compute_forecast` predicts the effect of other budgets.
`audit_domains` draws random pages to visit regardless of their due times. `find_unusual_traffic` returns domains whose
last hour was unusual. The package uses core, store, plugins, settings and errors.
"""
