"""Does a page need a browser, and what has one brought?

`choice_of` decides whether a body that was fetched is rendered as well, by what renders of pages of its template have
brought so far; `gain_of` says what one render brought beside the script-free read. Uses page and freshness.
"""

from crawler.core.rendering.choice import (
    RenderMode,
    choice_of,
)
from crawler.core.rendering.memory import (
    NO_RENDERS,
    RenderMemory,
    TemplateRenders,
    memory_after,
)
from crawler.core.rendering.outcome import (
    NO_RENDERING,
    NotRendered,
    RenderChoice,
    Rendered,
    RenderFailure,
    RenderGain,
    Rendering,
    RenderOutcome,
    gain_of,
)

__all__ = [
    "NO_RENDERING",
    "NO_RENDERS",
    "NotRendered",
    "RenderChoice",
    "RenderFailure",
    "RenderGain",
    "RenderMemory",
    "RenderMode",
    "RenderOutcome",
    "Rendered",
    "Rendering",
    "TemplateRenders",
    "choice_of",
    "gain_of",
    "memory_after",
]
