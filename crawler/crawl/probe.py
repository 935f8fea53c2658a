"""Asking a domain for a page that cannot exist, to know again what it shows in place of those that are gone."""

from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import digest
from crawler.core.soft_errors.sketch import Sketch
from crawler.core.visit.soft_errors import absent_of
from crawler.core.visit.visit import Known, Target, refusal_of
from crawler.crawl.parser_pool import Lens
from crawler.crawl.robots import Ask


def nowhere(target: Target) -> Url:
    """A page that nobody can have made, beside this one. Its name begins with a digit: numbers prove nothing later."""
    folder = target.url.partition("?")[0].rpartition("/")[0]
    return Url(f"{folder}/0{digest(target.key).hex()}")


async def ask_nowhere(target: Target, ask: Ask, readers: Lens, *, known: Known) -> Sketch | None:
    """What the domain says where nothing can be; None if it did not tell, or may not be asked."""
    url = nowhere(target)
    if refusal_of(url, depth=target.depth, known=known):
        return None
    answer = await ask(url)
    if not isinstance(answer, Fetched):
        return None
    is_good = 200 <= answer.status < 300
    return absent_of(answer, await readers.read(answer, url) if is_good else None, known=known)
