"""Crawlee for Python with its ParselCrawler: follows every link of a site and stores what Crawlee stores by default.

By default, it stores its request queue and its statistics, as files in the folder CRAWLEE_STORAGE_DIR. Concurrency is
fixed: if Crawlee scales it, it starts at ten and falls on a busy machine.

Run as python -m benchmarks.crawling.rivals.crawlee_walk URL [--parallelism N].
"""

import argparse
import asyncio
import logging

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext


async def walk(url: str, parallelism: int) -> None:
    settings = ConcurrencySettings(
        min_concurrency=parallelism, max_concurrency=parallelism, desired_concurrency=parallelism
    )
    crawler = ParselCrawler(concurrency_settings=settings, respect_robots_txt_file=True, configure_logging=False)
    _ = crawler.router.default_handler(follow)
    _ = await crawler.run([url])


async def follow(context: ParselCrawlingContext) -> None:
    await context.enqueue_links(strategy="same-origin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--parallelism", type=int, default=16)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    asyncio.run(walk(given.url, given.parallelism))


if __name__ == "__main__":
    main()
