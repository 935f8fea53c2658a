"""A Scrapy spider that follows every link of a site and stores nothing, or keeps Scrapy's HTTP cache.

Run as python -m benchmarks.crawling.rivals.scrapy_walk URL [--parallelism N] [--cache].
"""

import argparse
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor

# As Scrapy's documentation has it for a crawler that keeps to RFC 2616. A cache of its own would take pages without
# max-age for fresh by a tenth of their age; that each is asked for again is what both crawlers are to do.
CACHE: Mapping[str, object] = {
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    "HTTPCACHE_STORAGE": "scrapy.extensions.httpcache.FilesystemCacheStorage",
    "HTTPCACHE_DIR": "httpcache",  # below .scrapy of the folder that it runs in
    "DEFAULT_REQUEST_HEADERS": {"Cache-Control": "max-age=0"},
}


class Walker(scrapy.Spider):  # type: ignore[misc,unused-ignore] # Scrapy is installed for benchmarks only
    """Asks for every page that it finds a link to."""

    name = "walker"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname or ""]
        # Not allow_domains: that one compares with the port, allowed_domains without.
        self.extractor = LinkExtractor(allow=f"^{re.escape(url)}")

    def parse(self, response: Response) -> Iterator[object]:
        if isinstance(response, HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield scrapy.Request(link.url)


def walk(spider: type[Walker], given: argparse.Namespace, more: Mapping[str, object]) -> None:
    """Run a spider to its end."""
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": given.parallelism,
            "CONCURRENT_REQUESTS_PER_DOMAIN": given.parallelism,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            **more,
        }
    )
    _ = process.crawl(spider, url=given.url)
    process.start()  # until the spider is done


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--parallelism", type=int, default=16)
    return parser


def main() -> None:
    parser = options()
    parser.add_argument("--cache", action="store_true", help="keep answers, and ask for them again with validators")
    given = parser.parse_args()
    walk(Walker, given, CACHE if given.cache else {})


if __name__ == "__main__":
    main()
