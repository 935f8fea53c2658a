"""What a user said about a domain on the command line, and what that makes of its settings."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from crawler.errors import BadInput

if TYPE_CHECKING:
    from crawler.core.domain import Wishes

T = TypeVar("T")
OPTIONS = {
    "seeds": "seed",
    "budget_per_day": "budget",
    "delay": "delay",
    "parallelism": "parallelism",
    "include": "include",
    "exclude": "exclude",
    "max_depth": "depth",
    "max_pages": "max-pages",
    "weight": "weight",
    "allow_private": "allow-private",
}


@dataclass(frozen=True, slots=True)
class Said:
    """Settings as they were typed; None where nothing was said."""

    seeds: list[str] | None = None
    budget_per_day: int | None = None
    delay: timedelta | None = None
    parallelism: int | None = None
    include: list[str] | None = None
    exclude: list[str] | None = None
    max_depth: int | None = None
    max_pages: int | None = None
    weight: float | None = None
    allow_private: bool | None = None

    @property
    def names(self) -> list[str]:
        """The fields about which something was said."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]

    def applied_to(self, wishes: "Wishes") -> "Wishes":
        """The wishes with what was said in place of what was there; seeds are left to whoever knows the domain."""
        return replace(
            wishes,
            budget_per_day=_or(self.budget_per_day, wishes.budget_per_day),
            delay=_or(self.delay, wishes.delay),
            parallelism=_or(self.parallelism, wishes.parallelism),
            include=_or(_tuple(self.include), wishes.include),
            exclude=_or(_tuple(self.exclude), wishes.exclude),
            max_depth=_or(self.max_depth, wishes.max_depth),
            max_pages=_or(self.max_pages, wishes.max_pages),
            weight=_or(self.weight, wishes.weight),
            allow_private=_or(self.allow_private, wishes.allow_private),
        )

    def differs_from(self, wishes: "Wishes") -> bool:
        """Whether anything was said that is not so already."""
        return self.applied_to(wishes) != wishes or bool(self.seeds)


def _or(said: T | None, otherwise: T) -> T:
    return otherwise if said is None else said


def _tuple(said: list[str] | None) -> tuple[str, ...] | None:
    return None if said is None else tuple(said)


def without(wishes: "Wishes", options: list[str]) -> "Wishes":
    """The wishes with the named options back at their defaults. Raises BadInput for a name that is none."""
    names = {option: name for name, option in OPTIONS.items()}
    defaults = type(wishes)()
    for option in options:
        name = names.get(option.removeprefix("--"))
        if name is None:
            raise BadInput(f"there is no setting {option!r}; there are {', '.join(names)}")
        wishes = replace(wishes, **{name: getattr(defaults, name)})
    return wishes
