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

# The settings of Scrapy's documentation for a crawler that follows RFC 2616. The cache policy treats pages without max-
# age as fresh for a tenth of their age; both crawlers must revalidate every page instead.
CACHE: Mapping[str, object] = {
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    "HTTPCACHE_STORAGE": "scrapy.extensions.httpcache.FilesystemCacheStorage",
    "HTTPCACHE_DIR": "httpcache",  # below .scrapy in the working directory
    "DEFAULT_REQUEST_HEADERS": {"Cache-Control": "max-age=0"},
}


class Walker(scrapy.Spider):  # type: ignore[misc,unused-ignore] # Scrapy is installed for benchmarks only
    """A spider that requests every page it finds a link to."""

    name = "walker"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname or ""]
        # allowed_domains ignores the port, but allow_domains compares it.
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
    process.start()  # blocks until the spider is done


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--parallelism", type=int, default=16)
    return parser


def main() -> None:
    parser = options()
    parser.add_argument("--cache", action="store_true", help="cache responses and revalidate them")
    given = parser.parse_args()
    walk(Walker, given, CACHE if given.cache else {})


if __name__ == "__main__":
    main()
