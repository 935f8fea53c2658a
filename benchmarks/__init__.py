"""What is long or timed: each module is a script with one printed table. `make bench` runs them all."""
