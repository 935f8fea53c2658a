"""The settings of domains: reading what was typed, putting it in place of what was there, describing the result."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import nan
from typing import Any

from crawler import times
from crawler.app.parse import parse_interval, parse_positive, parse_share, parse_size
from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, refusals_in, value_of, with_values
from crawler.core.setting import Kind, Setting
from crawler.errors import BadInput

MAX_DIGITS = 10
ANSWERS = {"yes": True, "no": False}
PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.FACTOR: parse_positive,
    Kind.SHARE: parse_share,
    Kind.BYTES: parse_size,
    Kind.DELAY: times.span,
    Kind.SPAN: parse_interval,
}


@dataclass(frozen=True, slots=True)
class SettingsPatch:
    """Settings that a user gave, by name; what is not in it was not given."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seeds(self) -> list[str]:
        return list(self.values.get("seeds", ()))

    def applied_to(self, domain_settings: DomainSettings) -> DomainSettings:
        """Return the settings with the given values in place of theirs, except seeds, which need the domain's scope.

        A target takes the place of the other one. Raises BadInput for what cannot be.
        """
        instead = {BY_NAME[name].instead_of for name in self.values} - {""}
        others = {name: BY_NAME[name].default for name in instead}
        given = {name: value for name, value in self.values.items() if name != "seeds"}
        try:
            return with_values(domain_settings, others | given)
        except ValueError as error:  # a pattern that is none, two targets
            raise BadInput(str(error)) from error

    def differs_from(self, domain_settings: DomainSettings) -> bool:
        """Return whether anything was given that is not so already."""
        return self.applied_to(domain_settings) != domain_settings or bool(self.seeds)


def patch_of(given: Mapping[str, Any]) -> SettingsPatch:
    """Return the patch of values by name, leaving out those that are None."""
    return SettingsPatch(
        {name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value is not None}
    )


def parse_field(setting: Setting, text: str) -> Any:
    """Parse the value of a setting that was filled into a form. Raises BadInput, which names the field by its label."""
    try:
        return _parse_number(setting, text) if setting.kind in {Kind.COUNT, Kind.NUMBER} else parse_text(setting, text)
    except ValueError as error:
        raise BadInput(f"{setting.label or setting.name}: {error}") from error


def _parse_number(setting: Setting, text: str) -> int | float:
    """Parse a number within the bounds of a setting."""
    if setting.kind is Kind.COUNT:
        is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
        if not (is_number and setting.least <= int(text) <= setting.most):
            raise ValueError(f"{text!r} is no whole number from {setting.least:g} to {setting.most:,}")
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not setting.least <= number <= setting.most:
        raise ValueError(f"{text!r} is no number from {setting.least:g} to {setting.most:g}")
    return number


def parse_text(setting: Setting, text: str) -> Any:
    """Parse the value of a setting that is no number and has no bounds. Raises ValueError."""
    if setting.kind in PARSERS:
        return PARSERS[setting.kind](text)
    if setting.kind is Kind.FLAG:
        if text.casefold() not in ANSWERS:
            raise ValueError(f"{text!r} is neither yes nor no")
        return ANSWERS[text.casefold()]
    if setting.pattern and re.fullmatch(setting.pattern, text) is None:
        raise ValueError(f"{text!r} is {setting.misfit}")
    for refusal in refusals_in(setting, text):
        raise ValueError(refusal)
    return text


def without_settings(domain_settings: DomainSettings, options: Iterable[str]) -> DomainSettings:
    """Return the settings with the named options back at their defaults. Raises BadInput for an unknown name."""
    by_option, usual = {option_name(setting): setting for setting in SETTINGS}, DomainSettings()
    for option in (option.removeprefix("--") for option in options):
        if option in by_option:
            setting = by_option[option]
            domain_settings = with_values(domain_settings, {setting.name: value_of(usual, setting)})
        elif option == "rules":
            domain_settings = replace(domain_settings, rules=usual.rules)
        else:
            raise BadInput(f"there is no setting {option!r}; there are {', '.join([*by_option, 'rules'])}")
    return domain_settings


def option_name(setting: Setting) -> str:
    """Return the name of a setting's option, without dashes."""
    return re.split("[ /]", setting.option)[0].removeprefix("--")


def describe_settings(domain_settings: DomainSettings) -> dict[str, object]:
    """Return the settings for JSON."""
    return {setting.key: _plain(value_of(domain_settings, setting)) for setting in SETTINGS}


def _plain(value: Any) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, tuple) else value
