"""What installed packages add to a crawl: a score of pages, a filter of URLs, a reader of a type, a revisit policy.

A package offers plugins as Python entry points (docs/extending.md); RECRAWL_PLUGINS names those that are used, and none
is imported before. `load` gives them ready for use, each tried once, or raises PluginBroken. They enter core as plain
functions, so that core knows nothing of packages. Uses core alone.
"""

from crawler.plugins.loading import (
    NO_PLUGINS,
    Plugins,
    add_plugin_defaults,
    is_known_policy,
    list_plugins,
    load_plugins,
    load_reader,
    require_policy,
)
from crawler.plugins.points import PageScore, ReadContent, ReaderOfType, RevisitRule, UrlFilter
