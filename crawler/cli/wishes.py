"""What a user said about a domain on the command line, and what that makes of its settings."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from crawler.errors import BadInput

if TYPE_CHECKING:
    from crawler.core.cash import Ordering
    from crawler.core.domain_settings import DomainSettings

T = TypeVar("T")
OPTIONS = {
    "seeds": "seed",
    "budget_per_day": "budget",
    "bytes_per_day": "bytes",
    "target_freshness": "fresh",
    "target_age": "no-older-than",
    "delay": "delay",
    "parallelism": "parallelism",
    "include": "include",
    "exclude": "exclude",
    "max_depth": "depth",
    "max_pages": "max-pages",
    "weight": "weight",
    "allow_private": "allow-private",
    "external_links": "external-links",
    "rules": "rules",
}
# Those of Ordering, which wishes hold as one.
ORDERING = {
    "order": "order",
    "url_share": "url-share",
    "favour": "favour",
    "favour_by": "favour-by",
    "discovery": "discovery-weight",
    "refresh": "refresh-weight",
}


@dataclass(frozen=True, slots=True)
class Said:
    """Settings as they were typed; None where nothing was said."""

    seeds: list[str] | None = None
    budget_per_day: int | None = None
    bytes_per_day: int | None = None
    target_freshness: float | None = None
    target_age: timedelta | None = None
    delay: timedelta | None = None
    parallelism: int | None = None
    include: list[str] | None = None
    exclude: list[str] | None = None
    max_depth: int | None = None
    max_pages: int | None = None
    weight: float | None = None
    allow_private: bool | None = None
    order: str | None = None
    url_share: float | None = None
    favour: list[str] | None = None
    favour_by: float | None = None
    discovery: float | None = None
    refresh: float | None = None
    external_links: float | None = None

    @property
    def names(self) -> list[str]:
        """The fields about which something was said."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]

    def applied_to(self, domain_settings: "DomainSettings") -> "DomainSettings":
        """The wishes with what was said in place of what was there; seeds are left to whoever knows the domain.

        A target takes the place of the other one. Raises BadInput for what cannot be.
        """
        freshness, age = self.target_freshness, self.target_age
        if freshness is None and age is None:
            freshness, age = domain_settings.target_freshness, domain_settings.target_age
        try:
            return replace(
                domain_settings,
                budget_per_day=_or(self.budget_per_day, domain_settings.budget_per_day),
                bytes_per_day=_or(self.bytes_per_day, domain_settings.bytes_per_day),
                target_freshness=freshness,
                target_age=age,
                delay=_or(self.delay, domain_settings.delay),
                parallelism=_or(self.parallelism, domain_settings.parallelism),
                include=_or(_tuple(self.include), domain_settings.include),
                exclude=_or(_tuple(self.exclude), domain_settings.exclude),
                max_depth=_or(self.max_depth, domain_settings.max_depth),
                max_pages=_or(self.max_pages, domain_settings.max_pages),
                weight=_or(self.weight, domain_settings.weight),
                allow_private=_or(self.allow_private, domain_settings.allow_private),
                ordering=self._ordering(domain_settings.ordering),
                external_links=_or(self.external_links, domain_settings.external_links),
            )
        except ValueError as error:  # a pattern that is none, two targets
            raise BadInput(str(error)) from error

    def _ordering(self, before: "Ordering") -> "Ordering":
        return replace(
            before,
            order=type(before.order)(_or(self.order, before.order)),
            url_share=_or(self.url_share, before.url_share),
            favour=_or(_tuple(self.favour), before.favour),
            favour_by=_or(self.favour_by, before.favour_by),
            discovery=_or(self.discovery, before.discovery),
            refresh=_or(self.refresh, before.refresh),
        )

    def differs_from(self, domain_settings: "DomainSettings") -> bool:
        """Whether anything was said that is not so already."""
        return self.applied_to(domain_settings) != domain_settings or bool(self.seeds)


def _or(said: T | None, otherwise: T) -> T:
    return otherwise if said is None else said


def _tuple(said: list[str] | None) -> tuple[str, ...] | None:
    return None if said is None else tuple(said)


def without(domain_settings: "DomainSettings", options: list[str]) -> "DomainSettings":
    """The wishes with the named options back at their defaults. Raises BadInput for a name that is none."""
    names = {option: name for name, option in OPTIONS.items()}
    of_ordering = {option: name for name, option in ORDERING.items()}
    defaults = type(domain_settings)()
    for option in (option.removeprefix("--") for option in options):
        if option in names:
            domain_settings = replace(domain_settings, **{names[option]: getattr(defaults, names[option])})
        elif option in of_ordering:
            usual = {of_ordering[option]: getattr(defaults.ordering, of_ordering[option])}
            domain_settings = replace(domain_settings, ordering=replace(domain_settings.ordering, **usual))
        else:
            raise BadInput(f"there is no setting {option!r}; there are {', '.join([*names, *of_ordering])}")
    return domain_settings
