"""A domain's settings on the command line: the options that the table makes, what was typed, and how it is shown."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import wraps
from math import nan
from typing import Annotated, Any

import typer

from crawler.cli import values
from crawler.core.domain_settings import SETTINGS, DomainSettings, refusals_in, value_of, with_values
from crawler.core.setting import Kind, Setting
from crawler.errors import BadInput
from crawler.format.values import format_bytes, format_share, format_span

PANELS = {False: "Settings of the domain", True: "What is important in the domain"}
MOST_DIGITS = 10
ANSWERS = {"yes": True, "no": False}
BY_NAME = {setting.name: setting for setting in SETTINGS}
PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.FACTOR: values.positive,
    Kind.SHARE: values.share,
    Kind.BYTES: values.size,
    Kind.DELAY: values.span,
    Kind.SPAN: values.interval,
}
TYPES: dict[Kind, Any] = {  # of the value that the command is given
    Kind.COUNT: int,
    Kind.NUMBER: float,
    Kind.FACTOR: float,
    Kind.SHARE: float,
    Kind.BYTES: int,
    Kind.DELAY: timedelta,
    Kind.SPAN: timedelta,
    Kind.TEXTS: list[str],
    Kind.TEXT: str,
    Kind.FLAG: bool,
}


@dataclass(frozen=True, slots=True)
class SettingsPatch:
    """Settings as they were typed, by name; what is not in it was not typed."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seeds(self) -> list[str]:
        return list(self.values.get("seeds", ()))

    def applied_to(self, domain_settings: DomainSettings) -> DomainSettings:
        """The settings with what was typed in place of what was there; seeds are left to whoever knows the domain.

        A target takes the place of the other one. Raises BadInput for what cannot be.
        """
        instead = {BY_NAME[name].instead_of for name in self.values} - {""}
        others = {name: BY_NAME[name].default for name in instead}
        typed = {name: value for name, value in self.values.items() if name != "seeds"}
        try:
            return with_values(domain_settings, others | typed)
        except ValueError as error:  # a pattern that is none, two targets
            raise BadInput(str(error)) from error

    def differs_from(self, domain_settings: DomainSettings) -> bool:
        """Whether anything was typed that is not so already."""
        return self.applied_to(domain_settings) != domain_settings or bool(self.seeds)


NOTHING = SettingsPatch()


def with_settings(*, of_crawl: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of the table in place of its parameter `patch`.

    of_crawl: only those that `recrawl crawl` offers.
    """
    offered = [setting for setting in SETTINGS if setting.of_crawl or not of_crawl]

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def run(**given: Any) -> int:
            typed = {setting.name: given.pop(setting.name) for setting in offered}
            return command(**given, patch=patch_of(typed))

        signature = inspect.signature(command, eval_str=True)
        options = [_parameter(setting) for setting in offered]
        parameters = [
            each
            for parameter in signature.parameters.values()
            for each in (options if parameter.name == "patch" else [parameter])
        ]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
        return run

    return decorated


def patch_of(typed: Mapping[str, Any]) -> SettingsPatch:
    """What was typed, by name, None where nothing was."""
    return SettingsPatch(
        {name: tuple(value) if isinstance(value, list) else value for name, value in typed.items() if value is not None}
    )


def typed_value(setting: Setting, text: str) -> Any:
    """The value of a setting that was filled into a form, as the command takes it. Raises BadInput, with its label."""
    label = setting.label or setting.name
    if setting.kind is Kind.COUNT:
        is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
        if not (is_number and setting.least <= int(text) <= setting.most):
            raise BadInput(f"{label}: {text!r} is no whole number from {setting.least:g} to {setting.most:,}")
        return int(text)
    if setting.kind is Kind.FLAG:
        if text.casefold() not in ANSWERS:
            raise BadInput(f"{label}: {text!r} is neither yes nor no")
        return ANSWERS[text.casefold()]
    try:
        if setting.kind is Kind.NUMBER:
            return _number(setting, text)
        return read_text(setting, text)
    except typer.BadParameter as error:
        raise BadInput(f"{label}: {error.message}") from error


def _number(setting: Setting, text: str) -> float:
    """A number within the setting's bounds. Raises BadParameter."""
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not setting.least <= number <= setting.most:
        raise typer.BadParameter(f"{text!r} is no number from {setting.least:g} to {setting.most:g}")
    return number


def _parser(setting: Setting) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        return read_text(setting, text)

    return parse


def _parameter(setting: Setting) -> inspect.Parameter:
    # Made here, not written, so that the type checker cannot read it.
    annotation = Annotated[TYPES[setting.kind] | None, _option(setting)]  # type: ignore[valid-type,name-defined]
    return inspect.Parameter(setting.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


def _option(setting: Setting) -> Any:
    words, _, metavar = setting.option.partition(" ")
    given: dict[str, Any] = {"help": setting.help, "rich_help_panel": PANELS[setting.of_importance]}
    if metavar:
        given["metavar"] = metavar
    if setting.kind in {Kind.COUNT, Kind.NUMBER}:
        given |= {"min": setting.least, "max": setting.most}
    elif setting.kind is Kind.TEXT or setting.refuses is not None:
        given["parser"] = _parser(setting)
    elif setting.kind in PARSERS:
        given["parser"] = PARSERS[setting.kind]
    return typer.Option(words, **given)


def read_text(setting: Setting, text: str) -> Any:
    """The value of a setting that is typed as text. Raises BadParameter."""
    if setting.kind in PARSERS:
        return PARSERS[setting.kind](text)
    if setting.pattern and re.fullmatch(setting.pattern, text) is None:
        raise typer.BadParameter(f"{text!r} is {setting.misfit}")
    for refusal in refusals_in(setting, text):
        raise typer.BadParameter(refusal)
    return text


def without(domain_settings: DomainSettings, options: Iterable[str]) -> DomainSettings:
    """The settings with the named options back at their defaults. Raises BadInput for a name that is none."""
    names = {option_of(setting): setting for setting in SETTINGS}
    usual = DomainSettings()
    for option in (option.removeprefix("--") for option in options):
        if option in names:
            setting = names[option]
            domain_settings = with_values(domain_settings, {setting.name: value_of(usual, setting)})
        elif option == "rules":
            domain_settings = replace(domain_settings, rules=usual.rules)
        else:
            raise BadInput(f"there is no setting {option!r}; there are {', '.join([*names, 'rules'])}")
    return domain_settings


def option_of(setting: Setting) -> str:
    """The name of a setting's option, without dashes."""
    return re.split("[ /]", setting.option)[0].removeprefix("--")


def as_document(domain_settings: DomainSettings) -> dict[str, object]:
    """The settings for JSON."""
    return {setting.key: _plain(value_of(domain_settings, setting)) for setting in SETTINGS}


def _plain(value: Any) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, tuple) else value


def facts_of(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """The settings for people, each that has a label."""
    return [
        (setting.label, shown_setting(setting.name, value_of(domain_settings, setting)))
        for setting in SETTINGS
        if setting.label
    ]


def shown_setting(name: str, value: Any) -> str:
    """The value of a setting in words; an empty string where it is the default and that goes without saying."""
    setting = BY_NAME[name]
    return setting.unset if value == setting.default else setting.words.format(_shown(setting.kind, value))


def _shown(kind: Kind, value: Any) -> str:
    match kind:
        case Kind.NUMBER | Kind.FACTOR:
            return f"{value:g}"
        case Kind.SHARE:
            return format_share(value)
        case Kind.BYTES:
            return format_bytes(value)
        case Kind.DELAY:
            return f"{value.total_seconds():g} s"
        case Kind.SPAN:
            return format_span(value)
        case Kind.TEXTS:
            return "\n".join(value)
        case _:
            return str(value)
