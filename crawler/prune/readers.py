"""What a person can do about a reader of the feed for whom things are kept: they stay until it has read them."""

from crawler.store.retention import SlowestReader


def remedy_of(reader: SlowestReader) -> str:
    """The next step, as a person types it: to let it read on, or to have it forgotten."""
    number = reader.subscription
    if number is None:
        name = reader.name.replace("'", "''")
        forget = f"DELETE FROM feed_reader WHERE name = '{name}';"  # noqa: S608  shown to a person, never run
        return f"let it read on, or forget it in recrawl db shell: {forget}"
    if reader.paused_at is not None:
        paused = f"it is paused since {reader.paused_at:%Y-%m-%d}"
        return f"{paused}: recrawl notify resume {number}, or recrawl notify remove {number}"
    return f"recrawl notify list says what is wrong with it; or recrawl notify remove {number}"
