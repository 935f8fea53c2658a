"""Made-up webs whose truth is known, and replays of a real one: pages, importances, rates and moments of change."""
