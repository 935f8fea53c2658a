"""Plugins of installed packages: page scores, URL filters, readers of media types and revisit policies.

Packages provide plugins as Python entry points (docs/extending.md). Only those named in RECRAWL_PLUGINS are imported.
`load_plugins` loads each and tries it once, or raises PluginBroken. Core gets them as plain functions. Uses only core.
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
