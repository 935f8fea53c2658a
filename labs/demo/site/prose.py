"""English-looking random sentences about a topic, similar enough to prose for extractors and fingerprints."""

import re
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a section of the site."""

    name: str
    nouns: tuple[str, ...]


def _list(text: str, separator: str = " ") -> tuple[str, ...]:
    return tuple(text.split(separator))


def _topic(name: str, nouns: str) -> Topic:
    return Topic(name, _list(nouns))


TOPICS = (
    _topic(
        "gardens",
        "border hedge orchard seedling trellis compost bulb lawn pergola greenhouse blossom root pruning meadow "
        "watering-can gardener frost mulch espalier pond",
    ),
    _topic(
        "bridges",
        "arch cable span pier girder deck truss abutment parapet keystone rivet engineer toll foundation river "
        "scaffold load inspection suspension drawbridge",
    ),
    _topic(
        "kitchens",
        "oven ladle dough stockpot larder whisk recipe broth cleaver spice griddle cellar baker crust marinade "
        "kettle pastry apprentice vinegar harvest",
    ),
    _topic(
        "sailing",
        "mast keel harbour rudder tide jib anchor crew lighthouse hull logbook rigging squall pilot chart regatta "
        "mooring compass voyage dock",
    ),
    _topic(
        "railways",
        "signal platform locomotive timetable carriage tunnel gauge junction driver siding ticket viaduct sleeper "
        "boiler guard terminus freight whistle depot crossing",
    ),
    _topic(
        "weather",
        "barometer cloud front gale forecast thermometer drought storm observer rainfall fog balloon humidity "
        "thunder isobar snowfall station almanac breeze sunrise",
    ),
    _topic(
        "libraries",
        "catalogue shelf manuscript reader binding archive librarian index folio scroll bookplate reading-room "
        "collection margin press parchment ledger translation donor edition",
    ),
    _topic(
        "instruments",
        "violin bellows string reed organ tuning bow luthier fret valve drum keyboard varnish workshop soundboard "
        "octave rehearsal horn metronome soloist",
    ),
)

_ADJECTIVES = _list(
    "old narrow careful restored northern shallow painted heavy early quiet broken generous public uneven brass "
    "seasonal local forgotten temporary ordinary steep reliable handmade crowded distant modest curious patient "
    "borrowed unfinished remarkable second-hand"
)
_VERBS = _list(
    "supports replaces improves delays explains protects follows damages reveals surprises outlasts resembles "
    "requires interrupts strengthens attracts limits describes conceals serves complicates rewards"
)
_PLURALS = _list("visitors builders owners neighbours students experts volunteers critics members families")
_PLURAL_VERBS = _list(
    "prefer study repair remember photograph avoid measure recommend question admire maintain inherit"
)
_PLACES = _list(
    "near the old market, behind the town hall, along the southern shore, in the upper valley, beside the canal, "
    "at the edge of the village, under the railway arch, across the square",
    ", ",
)
_TIMES = _list(
    "before the first winter, after a long dispute, during the summer months, within a single year, since the last "
    "survey, on most weekdays, by the end of the decade, every other spring",
    ", ",
)
_SHAPES = (
    "The {a} {n} {v} the {m}, and {p} {w} it {l}.",
    "{T}, the {n} {v} every {a} {m} {l}.",
    "Some {p} {w} the {n} because it {v} the {a} {m}.",
    "{N} of the {n} cost {k} crowns {t}, although the {a} {m} was never finished.",
    "Few {p} would say that a {a} {n} {v} the {m} {t}.",
    "What {v} the {a} {n} is not the {m} but the {o}, as {p} often {w} {l}.",
    "In {y} the {n} stood {l}; today {p} {w} only the {a} {m}.",
    "Of {k} {p} who were asked {t}, most {w} the {a} {n} and its {m}.",
    "A {a} {n} needs a {b} {m}, and that is why {p} {w} both {t}.",
    "{T}, {p} found that the {n} {v} the {o} more than the {m}.",
)
_AN = re.compile(r"\b([Aa]) (?=[aeiou])")
_COUNTS = ("One", "Two", "Three", "A dozen", "Half", "Most", "None")


def sentence(chance: Random, topic: Topic) -> str:
    """Return a sentence of 10 to 25 words; equal generators give equal sentences."""
    noun, other, third = chance.sample(topic.nouns, 3)
    adjective, second = chance.sample(_ADJECTIVES, 2)
    time = chance.choice(_TIMES)
    words = chance.choice(_SHAPES).format(
        a=adjective,
        b=second,
        n=noun,
        m=other,
        o=third,
        v=chance.choice(_VERBS),
        p=chance.choice(_PLURALS),
        w=chance.choice(_PLURAL_VERBS),
        l=chance.choice(_PLACES),
        t=time,
        T=time.capitalize(),
        N=chance.choice(_COUNTS),
        k=chance.randint(12, 980),
        y=chance.randint(1790, 1989),
    )
    return _AN.sub(r"\1n ", words)


def paragraph(chance: Random, topic: Topic) -> list[str]:
    """Return three to six sentences."""
    return [sentence(chance, topic) for _ in range(chance.randint(3, 6))]


def title(chance: Random, topic: Topic) -> str:
    """Return a headline of three to six words."""
    noun, other = chance.sample(topic.nouns, 2)
    shape = chance.choice(("The {a} {n}", "A {a} {n} and its {m}", "How the {n} became {a}", "{A} {n} or {b} {m}?"))
    adjective, second = chance.sample(_ADJECTIVES, 2)
    return _AN.sub(r"\1n ", shape.format(a=adjective, A=adjective.capitalize(), b=second, n=noun, m=other))


def slug(text: str) -> str:
    """Return the text as a path segment: lowercase letters, digits and hyphens."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
