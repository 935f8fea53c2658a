"""What installed packages add to a crawl: a score of pages, a filter of URLs, a reader of a content type.

A package offers plugins as Python entry points (docs/extending.md); RECRAWL_PLUGINS names those that are used, and none
is imported before. `load` gives them ready for use, each tried once, or raises PluginBroken. They enter core as plain
functions, so that core knows nothing of packages. Uses core alone.
"""

from crawler.plugins.loaded import NO_PLUGINS, Plugins, defaults_with, load, reader_named, survey
from crawler.plugins.points import PageScore, ReadContent, ReaderOfType, UrlFilter

__all__ = [
    "NO_PLUGINS",
    "PageScore",
    "Plugins",
    "ReadContent",
    "ReaderOfType",
    "UrlFilter",
    "defaults_with",
    "load",
    "reader_named",
    "survey",
]
