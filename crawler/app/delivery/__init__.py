"""What leaves the store: notifications, feeds, exports, and indexes that are searched."""
