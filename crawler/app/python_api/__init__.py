"""The public Python API: App, BlockingApp and open_app."""
