"""Statically built sites, deploy by deploy, crawled by the real crawl: what telling deploys brings."""
