"""Made-up webs whose truth is known, and replays of real ones: pages, importances, rates and times of changes."""
