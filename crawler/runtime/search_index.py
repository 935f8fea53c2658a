"""Where the full-text index is kept that searches use: a file of RECRAWL_HOME."""

from pathlib import Path

from crawler.runtime.private import private_folder


def search_file(home: Path) -> Path:
    """The file, which may not be there yet; its folder is made, for its owner alone."""
    return private_folder(home, "search") / "pages.sqlite"
