"""What a server needs beside its pages: its key, a parser process, metrics, and a note of where it listens."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from crawler.engine import ParserPool, give_back
from crawler.engine import settle_memory as release_memory
from crawler.plugins import load
from crawler.runtime.children import TAG
from crawler.runtime.keys.entrance import ENTERING, ENTRANCE, Signer, ensure_key
from crawler.runtime.keys.entrance import entrance as login_link
from crawler.runtime.keys.feeds import FEED
from crawler.runtime.own_address import LONGEST_NONCE, NAMES, PROOF_PATH, proof_of
from crawler.runtime.pages import USUAL_PORT, noted_as_serving
from crawler.settings import Settings
from crawler.store.database import Database


def open_parsers(settings: Settings) -> ParserPool:
    """Open the process that parses pages for the web UI, with the plugins in use."""
    return ParserPool(1, plugins=load(settings.plugins))


def announce_server(settings: Settings, *, port: int) -> AbstractContextManager[None]:
    """Let other commands of this home know, while the block runs, that this process serves the web UI on a port."""
    address = settings.pages_addresses[0] if settings.pages_addresses else None
    return noted_as_serving(settings.home.resolve(), port=port, address=address)


@contextmanager
def serve_metrics(settings: Settings, db: Database) -> Iterator[None]:
    """Serve the metrics of the domains, where the settings name a port. To be called within the loop of `db`."""
    if settings.metrics_port is None:
        yield
        return
    from crawler.runtime.metrics.served import pages_metrics  # noqa: PLC0415  3 MB, which few need

    with pages_metrics(settings, db, settings.home.resolve(), stack=os.environ.get(TAG)):
        yield
