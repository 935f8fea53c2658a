"""The requests of a lease: session, budget, pacing, robots.txt, login and circuit breaker."""
