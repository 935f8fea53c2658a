"""Every request of a lease: its session, its budget and pace, and what holds it up."""
