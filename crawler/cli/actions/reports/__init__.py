"""What is fresh, what has changed, what a budget brings."""
