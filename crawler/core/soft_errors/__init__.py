"""Soft 404, login, consent and block pages, truncated bodies: what comes with status 200 and is not the page.

`recognise` names the soft error that an answer shows, or None. It is told apart by texts that many pages share, by
what the domain says of a page that cannot exist, and by how much of the own text was replaced. Uses change.
"""

from crawler.core.soft_errors.recognise import (
    LOOKS_UNTIL_GONE,
    LOOKS_UNTIL_REAL,
    NO_WALLS,
    Face,
    Sighting,
    Wall,
    Walls,
    after_good,
    asked,
    is_due,
    is_shared,
    noted,
    recognise,
    told,
)
from crawler.core.soft_errors.sketch import (
    NOTHING,
    Sketch,
    Turn,
    frame_of,
    own,
    sketch,
    sketch_of_target,
    sketch_of_url,
    turn_of,
)

__all__ = [
    "LOOKS_UNTIL_GONE",
    "LOOKS_UNTIL_REAL",
    "NOTHING",
    "NO_WALLS",
    "Face",
    "Sighting",
    "Sketch",
    "Turn",
    "Wall",
    "Walls",
    "after_good",
    "asked",
    "frame_of",
    "is_due",
    "is_shared",
    "noted",
    "own",
    "recognise",
    "sketch",
    "sketch_of_target",
    "sketch_of_url",
    "told",
    "turn_of",
]
