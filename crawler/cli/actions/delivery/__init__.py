"""What goes to others: notifications, feeds, tokens, exports."""
