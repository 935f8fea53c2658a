"""Real crawls of statically built sites, deploy by deploy: the gain from detecting deploys."""
