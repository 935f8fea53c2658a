"""Accuracy of change detectors: repeated visits to generated sites that are filled with real pages."""
