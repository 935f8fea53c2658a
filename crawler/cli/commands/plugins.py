"""recrawl plugins: its options and its help."""

from crawler.cli.options import Json


def plugins(as_json: Json = False) -> int:
    """List the plugins that installed packages offer, which of them are used, and what is wrong with those.

    RECRAWL_PLUGINS names those that are used; they alone are imported. Exit code 1 where one cannot be used.

    Examples:

        recrawl plugins
        RECRAWL_PLUGINS=papers,calendars recrawl plugins
        recrawl plugins --json
    """
    from crawler.cli.actions.upkeep import plugins

    return plugins.list_all(as_json=as_json)
