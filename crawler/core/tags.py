"""Tags of domains, and the layers of a domain's settings: its own values, those of its tags, and the defaults."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, get_value, replace_values

MAX_TAGS = 50  # of one domain
TAG_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
# Settings of one domain only.
UNTAGGED_SETTINGS = frozenset({"seeds"})


class Tag(Struct, frozen=True):
    """A tag of domains with its settings. values: by the names of settings; domains without own values inherit them."""

    name: str
    values: Mapping[str, Any] = {}


class LayeredSettings(Struct, frozen=True):
    """The settings of a domain in layers: its own values, then those of its tags, then the defaults.

    own: by the names of settings, and "rules", which tags do not have.
    """

    own: Mapping[str, Any] = {}
    tags: tuple[Tag, ...] = ()

    def set_own(self, values: Mapping[str, Any]) -> "LayeredSettings":
        """Return the settings with other own values. A setting clears the own value of the setting that it replaces."""
        cleared = {BY_NAME[name].replaced_setting for name in values if name in BY_NAME}
        return replace(
            self, own={name: value for name, value in self.own.items() if name not in cleared} | dict(values)
        )

    def unset(self, names: Collection[str]) -> "LayeredSettings":
        """Return the settings without own values of these names: the tags or the defaults apply."""
        return replace(self, own={name: value for name, value in self.own.items() if name not in names})

    def merge(self) -> DomainSettings:
        """Return the settings in force. Raise ValueError if the tags disagree, or values cannot be combined."""
        inherited = _merge_tags(self.tags)
        replaced = {BY_NAME[name].replaced_setting for name in self.own if name in BY_NAME}
        values = {name: value for name, value in inherited.items() if name not in replaced}
        return replace_values(DomainSettings(), values | dict(self.own))

    def find_tag(self, name: str) -> str:
        """Return the name of the tag that a setting comes from; empty if it is an own value or the default."""
        if name in self.own or any(BY_NAME[each].replaced_setting == name for each in self.own if each in BY_NAME):
            return ""
        return next((tag.name for tag in self.tags if name in tag.values), "")


def parse_tag(text: str) -> str:
    """Return the name of a tag. Raise ValueError."""
    if TAG_NAME.fullmatch(text) is None:
        raise ValueError(
            f"{text[:60]!r} is not the name of a tag: use up to 40 lower-case letters, digits, '-', '_' and '.', "
            "such as news, and begin with a letter or digit"
        )
    return text


def list_own_values(domain_settings: DomainSettings) -> dict[str, Any]:
    """Return the values that differ from the defaults, by name, and the rules if there are any."""
    values, defaults = {each.name: get_value(domain_settings, each) for each in SETTINGS}, DomainSettings()
    own = {name: value for name, value in values.items() if value != get_value(defaults, BY_NAME[name])}
    return own | ({"rules": domain_settings.rules} if domain_settings.rules else {})


def _merge_tags(tags: Iterable[Tag]) -> dict[str, Any]:
    """Return the values of all tags. Raise ValueError if two of them set a setting differently."""
    merged, sources = dict[str, Any](), dict[str, str]()
    for tag in tags:
        for name, value in tag.values.items():
            setting = BY_NAME[name]
            if name in merged and merged[name] != value:
                raise ValueError(_explain_conflict(sources[name], tag.name, f"set {setting.label!r} differently"))
            if setting.replaced_setting in merged and sources[setting.replaced_setting] != tag.name:
                what = (
                    f"set {BY_NAME[setting.replaced_setting].label!r} and {setting.label!r}, which replace each other"
                )
                raise ValueError(_explain_conflict(sources[setting.replaced_setting], tag.name, what))
            merged[name] = value
            sources.setdefault(name, tag.name)
    return merged


def _explain_conflict(one: str, other: str, what: str) -> str:
    return f"its tags {one} and {other} {what}: change or unset one of them, or remove one of the tags"
