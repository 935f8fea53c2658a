"""The rival: a Scrapy spider that follows every link of a site and stores nothing.

A script for a process of its own: python scrapy_spider.py URL --parallelism 16.
"""

import argparse
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor


class Walker(scrapy.Spider):  # type: ignore[misc,unused-ignore] # Scrapy is installed for benchmarks only
    """Asks for every page that it finds a link to."""

    name = "walker"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname or ""]
        # Not allow_domains: that one compares with the port, allowed_domains without.
        self.extractor = LinkExtractor(allow=f"^{re.escape(url)}")

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if isinstance(response, HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield scrapy.Request(link.url)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("url")
    options.add_argument("--parallelism", type=int, default=16)
    given = options.parse_args()
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": given.parallelism,
            "CONCURRENT_REQUESTS_PER_DOMAIN": given.parallelism,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    _ = process.crawl(Walker, url=given.url)
    process.start()  # until the spider is done


if __name__ == "__main__":
    main()
