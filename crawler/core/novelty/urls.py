"""What a URL alone shows of a trap: folders that repeat, and the same URL without one of its parameters."""

from collections import Counter
from urllib.parse import parse_qsl, urlencode, urlsplit

from crawler.core.http import Url

MOST_REPEATS = 2  # of one folder in a path; real sites have /2026/11/11/, and no folder three times
FEWEST_SLASHES = len("http://") - len("http:") + 1 + MOST_REPEATS + 1  # of a URL with so many folders
MOST_PARAMETERS = 8  # of one URL, that are taken out one by one


def has_repeats(url: Url) -> bool:
    """Whether a folder of the path comes more than MOST_REPEATS times, as where relative links lead on for ever.

    Source: the rule for pathological paths of Heritrix (Mohr, Stack, Ranitovic, Avery, Kimpton, IWAW 2004).
    """
    if url.count("/") < FEWEST_SLASHES:
        return False
    folders = Counter(folder for folder in urlsplit(url).path.split("/")[:-1] if folder and not folder.isdigit())
    return any(many > MOST_REPEATS for many in folders.values())


def without_each_parameter(url: Url) -> list[tuple[str, str]]:
    """The URL without each of its query parameters in turn, the others sorted: pairs of name and URL.

    Source of the comparison: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST", WWW 2007.
    """
    if "?" not in url:
        return []
    parts = urlsplit(url)
    given = sorted(parse_qsl(parts.query, keep_blank_values=True))
    if not given or len(given) > MOST_PARAMETERS:
        return []
    bare = parts._replace(query="").geturl()
    found = []
    for at, (name, _) in enumerate(given):
        left = urlencode(given[:at] + given[at + 1 :])
        found.append((name, f"{bare}?{left}" if left else bare))
    return found
