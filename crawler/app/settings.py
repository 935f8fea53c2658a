"""Settings of domains: parse values as users type them, apply them, and convert settings to JSON."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from crawler import times
from crawler.app.actor import Permission, require_permission
from crawler.core import domain_settings as table
from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, get_value
from crawler.core.setting import Setting, SettingKind
from crawler.core.tags import UNTAGGED_SETTINGS, list_own_values
from crawler.errors import BadInput

# They send secrets of the machine, read its files, or reach its private network.
MACHINE_SETTINGS = ("headers", "auth", "login", "proxy", "ca_file", "insecure_tls", "allow_private")
MAX_DIGITS = 10
FLAG_VALUES = {"yes": True, "no": False}
MAX_FACTOR = 1_000_000
MAX_SECONDS = times.MAX_SPAN.total_seconds()
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
MAX_BYTES = 10**18  # sums per day must fit 64 bits
BY_KEY = {setting.key: setting for setting in SETTINGS}
_OPTION = re.compile(r"--[a-z-]+")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?b)?", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d{1,3})?)\s*(%?)", re.ASCII | re.IGNORECASE)


def parse_interval(text: str) -> timedelta:
    """Parse a duration above 0, such as 12h. Raises ValueError."""
    length = times.parse_span(text)
    if length <= timedelta(0):
        raise ValueError(f"{text!r} is not above 0")
    return length


def parse_size(text: str) -> int:
    """Parse a size in bytes, optionally with kB, MB, GB or TB (powers of ten). Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 500MB, 2GB or 1000000")
    count = round(Decimal(match[1]) * BYTES[(match[2] or "").lower()])
    if count > MAX_BYTES:
        raise ValueError(f"{text!r} is more than a million terabytes")
    return count


def parse_share(text: str) -> float:
    """Parse a share above 0 and below 1, such as 95% or 0.95. Raises ValueError."""
    match = _SHARE.fullmatch(text.strip())
    number = float(Decimal(match[1]) / (100 if match[2] else 1)) if match else 0.0
    if not 0 < number < 1:
        raise ValueError(f"{text!r} is not a share above 0 and below 1, such as 95% or 0.95")
    return number


def parse_positive(text: str) -> float:
    """Parse a number above 0 and up to MAX_FACTOR. Raises ValueError."""
    try:
        number = float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a number") from error
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{text!r} is not above 0")
    if number > MAX_FACTOR:
        raise ValueError(f"{text!r} is above {MAX_FACTOR:,}")
    return number


PARSERS: dict[SettingKind, Callable[[str], Any]] = {
    SettingKind.FACTOR: parse_positive,
    SettingKind.SHARE: parse_share,
    SettingKind.BYTES: parse_size,
    SettingKind.DELAY: times.parse_span,  # may be 0
    SettingKind.SPAN: parse_interval,  # above 0
}


@dataclass(frozen=True, slots=True)
class SettingsPatch:
    """The settings that a user gave, by name."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seeds(self) -> list[str]:
        return list(self.values.get("seeds", ()))

    def is_change_of(self, domain_settings: DomainSettings) -> bool:
        """Return whether the patch would change these settings; any seed counts as a change."""
        changed = (value != get_value(domain_settings, BY_NAME[name]) for name, value in self.values.items())
        return bool(self.seeds) or any(changed)


def make_patch(values: Mapping[str, Any]) -> SettingsPatch:
    """Return a patch of the values that are not None. Raises BadInput for an unknown name or an invalid value."""
    patch = {}
    for name, value in values.items():
        if name not in BY_NAME:
            raise BadInput(f"there is no setting {name!r}: use one of {', '.join(BY_NAME)}", field=name)
        if value is not None:
            try:
                patch[name] = _parse_json(BY_NAME[name], _to_plain(value))
            except ValueError as error:
                raise BadInput(f"{name}: {error}", field=name) from error
    return SettingsPatch(patch)


def make_changed_patch(domain_settings: DomainSettings) -> SettingsPatch:
    """Return a patch of the values that differ from the defaults. Raises BadInput for rules, which are no setting."""
    if domain_settings.rules:
        raise BadInput("rules are not given with the settings of a new domain: add them afterwards", field="rules")
    return make_patch(list_own_values(domain_settings))


def parse_field(setting: Setting, text: str) -> Any:
    """Parse the value of a setting in a form. Raises BadInput, with the label of the field."""
    try:
        return parse_text(setting, text)
    except ValueError as error:
        raise BadInput(f"{setting.label}: {error}") from error


def _parse_number(setting: Setting, text: str) -> int | float:
    """Parse a number within the bounds of a setting."""
    if setting.kind is SettingKind.COUNT:
        is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
        if not (is_number and setting.min_value <= int(text) <= setting.max_value):
            raise ValueError(f"{text!r} is not a whole number from {setting.min_value:g} to {setting.max_value:,}")
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not setting.min_value <= number <= setting.max_value:
        raise ValueError(f"{text!r} is not a number from {setting.min_value:g} to {setting.max_value:g}")
    return number


def parse_text(setting: Setting, text: str) -> Any:
    """Parse the value of a setting, or one of its texts if it is a list. Raises ValueError."""
    if setting.kind in {SettingKind.COUNT, SettingKind.NUMBER}:
        return _parse_number(setting, text)
    if setting.kind in PARSERS:
        return PARSERS[setting.kind](text)
    if setting.kind is SettingKind.FLAG:
        if text.casefold() not in FLAG_VALUES:
            raise ValueError(f"{text!r} is neither yes nor no")
        return FLAG_VALUES[text.casefold()]
    if setting.pattern and re.fullmatch(setting.pattern, text) is None:
        raise ValueError(f"{text!r} is {setting.mismatch}")
    for problem in table.list_setting_problems(setting, text):
        raise ValueError(problem)
    return text


def format_field(setting: Setting, value: Any) -> str:
    """Return the text of a setting's value in a form, from which `parse_field` returns the value; empty for None."""
    if value is None or value == "":
        return ""
    match setting.kind:
        case SettingKind.NUMBER | SettingKind.FACTOR:
            return f"{value:.12g}"
        case SettingKind.SHARE:
            return f"{100 * value:.10g}%"
        case SettingKind.BYTES:
            unit = next((each for each in ("tb", "gb", "mb", "kb") if value and value % BYTES[each] == 0), "")
            return f"{value // BYTES[unit]}{unit.upper().replace('KB', 'kB')}"
        case SettingKind.DELAY | SettingKind.SPAN:
            return times.format_span(value)
        case SettingKind.TEXTS:
            return "\n".join(value)
        case SettingKind.FLAG:
            return "yes" if value else "no"
        case _:
            return str(value)


def parse_setting_names(options: Iterable[str]) -> list[str]:
    """Return the names of the settings with these options, with or without dashes. Raises BadInput."""
    by_option = {get_option_name(setting): setting.name for setting in SETTINGS} | {"rules": "rules"}
    names = []
    for option in (option.removeprefix("--") for option in options):
        if option not in by_option:
            raise BadInput(f"there is no setting {option!r}: use one of {', '.join(by_option)}")
        names.append(by_option[option])
    return names


def get_option_name(setting: Setting) -> str:
    """Return the name of a setting's option, without dashes."""
    return re.split("[ /]", setting.option)[0].removeprefix("--")


def describe_settings(domain_settings: DomainSettings) -> dict[str, object]:
    """Return the settings for JSON."""
    return {setting.key: _to_plain(get_value(domain_settings, setting)) for setting in SETTINGS}


def describe_values(values: Mapping[str, Any]) -> dict[str, object]:
    """Return settings by name for JSON, by their keys."""
    return {each.key: _to_plain(values[each.name]) for each in SETTINGS if each.name in values}


def parse_document(document: Mapping[str, Any]) -> tuple[SettingsPatch, list[str]]:
    """Parse settings in the form that `describe_settings` returns. Raises BadInput with the field.

    Return the settings to change, and the options to reset before: those that are null, and seeds, because a list
    replaces the existing one.
    """
    values, unset = {}, []
    for key, value in document.items():
        if key not in BY_KEY:
            raise BadInput(f"it is not a setting; the settings are: {', '.join(BY_KEY)}", field=f"settings.{key[:60]}")
        setting = BY_KEY[key]
        if value is None or setting.name == "seeds":
            unset.append(get_option_name(setting))
        if value is not None:
            try:
                values[setting.name] = _parse_json(setting, value)
            except ValueError as error:
                raise BadInput(str(error), field=f"settings.{key}") from error
    return SettingsPatch(values), unset


def _parse_json(setting: Setting, value: Any) -> Any:
    """Parse the JSON value of a setting. Raises ValueError."""
    types, what = _JSON_TYPES.get(setting.kind, ((int, float), "a number"))
    items = value if isinstance(value, list) else ()
    # In Python, a bool is also an int.
    if not isinstance(value, types) or isinstance(value, bool) != (setting.kind is SettingKind.FLAG):
        raise ValueError(f"it is not {what}")
    if not all(isinstance(each, str) for each in items):
        raise ValueError(f"it is not {what}")
    if setting.kind is SettingKind.TEXTS:
        return tuple(parse_text(setting, each) for each in items)
    if setting.kind is SettingKind.FLAG or value == "":
        return value
    return parse_text(setting, value if isinstance(value, str) else f"{Decimal(str(value)):f}")  # 1e-05 as 0.00001


_JSON_TYPES: dict[SettingKind, tuple[Any, str]] = {
    SettingKind.TEXTS: (list, "a list of strings"),
    SettingKind.FLAG: (bool, "true or false"),
    SettingKind.TEXT: (str, "a string"),
}
_SCHEMAS: dict[SettingKind, dict[str, Any]] = {
    SettingKind.NUMBER: {"type": "number"},
    SettingKind.FACTOR: {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_FACTOR},
    SettingKind.SHARE: {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    SettingKind.BYTES: {"type": "integer", "minimum": 0, "maximum": MAX_BYTES},
    SettingKind.DELAY: {"type": "number", "minimum": 0, "maximum": MAX_SECONDS},
    SettingKind.SPAN: {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS},
    SettingKind.FLAG: {"type": "boolean"},
    SettingKind.TEXT: {"type": "string"},
    SettingKind.TEXTS: {"type": "array", "items": {"type": "string"}},
    SettingKind.COUNT: {"type": "integer"},
}


def build_settings_schema(*, is_change: bool, of_tag: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of the documents that `parse_document` accepts, or that `describe_settings` returns.

    of_tag: without the settings that a tag cannot have, and without the defaults.
    """
    keys = {f"--{get_option_name(setting)}": setting.key for setting in SETTINGS}
    properties = {}
    for setting, default in zip(SETTINGS, describe_settings(DomainSettings()).values(), strict=True):
        schema = dict(_SCHEMAS[setting.kind])
        if setting.kind in {SettingKind.COUNT, SettingKind.NUMBER}:
            schema |= {"minimum": setting.min_value, "maximum": setting.max_value}
        if is_change or default is None:
            schema["type"] = [schema["type"], "null"]
        text = _OPTION.sub(lambda match: keys.get(match[0], match[0]), setting.help.replace(" Can be repeated.", ""))
        if not of_tag or setting.name not in UNTAGGED_SETTINGS:
            properties[setting.key] = {**schema, "description": text} | ({} if of_tag else {"default": default})
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _to_plain(value: Any) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, tuple) else value


def require_permitted(names: Iterable[str]) -> None:
    """Raise NotAllowed if one of these settings reaches the machine, and the actor has no permission for that."""
    for name in names:
        if name in MACHINE_SETTINGS:
            require_permission(Permission.MANAGE, f"the setting {BY_NAME[name].label!r}")


def require_permitted_change(before: DomainSettings, after: DomainSettings) -> None:
    """Raise NotAllowed as `require_permitted` does for the settings that differ."""
    settings = (BY_NAME[name] for name in MACHINE_SETTINGS)
    require_permitted(each.name for each in settings if get_value(before, each) != get_value(after, each))
