"""The parameter forms of the Prefect UI: domain settings, the parameter `at`, and the list of domains."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from prefect.client.orchestration import get_client
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from crawler import times
from crawler.app.database import AppDatabase
from crawler.app.settings import SETTINGS, Setting, SettingKind, SettingsPatch, make_patch, parse_field
from crawler.errors import BadInput
from crawler.runtime.prefect.api import offer_domains

_CHOICE = re.compile(r"[a-z]+(\|[a-z]+)+")  # a pattern that is a list of words
# The settings with a field of their own, in this order. The others share one field, as JSON.
MAIN_SETTINGS = (
    *("target_freshness", "max_age", "budget_per_day", "bytes_per_day", "delay"),
    *("include", "exclude", "max_pages", "render", "allow_private"),
)
MORE = "more_settings"
# Typed as in the command: 95%, 500MB, 3d. Empty means the default.
_TEXT_KINDS = {SettingKind.SHARE, SettingKind.BYTES, SettingKind.DELAY, SettingKind.SPAN}


def _build_field(setting: Setting, position: int) -> tuple[Any, Any]:
    """Return the type and the Field of a setting. position: its position in the form."""
    about: dict[str, Any] = {"title": setting.label, "description": setting.help}
    about["json_schema_extra"] = {"position": position}
    match setting.kind:
        case SettingKind.COUNT:
            # For `int | None`, the UI would ask for the type first.
            # Without a default in the schema, the UI sends nothing for an empty field.
            about["json_schema_extra"] = lambda schema: schema.update(position=position) or schema.pop("default")
            low, high = int(setting.min_value), int(setting.max_value)
            schema = WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})
            return Annotated[int | None, schema], Field(None, ge=low, le=high, **about)
        case SettingKind.NUMBER:
            return float, Field(setting.default, ge=setting.min_value, le=setting.max_value, **about)
        case SettingKind.FACTOR:
            return float, Field(setting.default, gt=0, **about)
        case SettingKind.FLAG:
            return bool, Field(setting.default, **about)
        case SettingKind.TEXTS:
            return list[str], Field([], **about)
        case SettingKind.TEXT if _CHOICE.fullmatch(setting.pattern):
            return Literal[tuple(setting.pattern.split("|"))], Field(setting.default, **about)
        case kind:
            return str, Field("" if kind in _TEXT_KINDS else setting.default, **about)


_OFFERED = {each.name: each for each in SETTINGS if not each.is_about_importance}
_STRICT = ConfigDict(extra="forbid")


def _build_fields(names: Iterable[str]) -> dict[str, Any]:
    return {name: _build_field(_OFFERED[name], position) for position, name in enumerate(names)}


_MoreSettings = create_model(
    "MoreSettings", __config__=_STRICT, **_build_fields(each for each in _OFFERED if each not in MAIN_SETTINGS)
)


def _build_json_schema() -> dict[str, Any]:
    """Return the schema of the other settings as one JSON object.

    As `patternProperties`, the Prefect server validates them as it does `properties`, but its UI shows one JSON field
    instead of thirty fields.
    """
    properties = _MoreSettings.model_json_schema()["properties"]
    fields = {f"^{name}$": {k: v for k, v in each.items() if k != "position"} for name, each in properties.items()}
    return {
        "type": "object",
        "title": "More settings",
        "description": f'JSON, such as {{"language": "de", "keep_versions": 10}}. Names: {", ".join(properties)}.',
        "position": len(MAIN_SETTINGS),
        "default": {},
        "patternProperties": fields,
        "additionalProperties": False,
    }


if TYPE_CHECKING:

    class SettingsForm(BaseModel):
        """The settings of a domain, by name."""

else:
    SettingsForm = create_model(
        "SettingsForm",
        __config__=_STRICT,
        __doc__="Settings of a domain. Unchanged fields have their default values.",
        **_build_fields(MAIN_SETTINGS),
        **{MORE: (Annotated[dict[str, Any], WithJsonSchema(_build_json_schema())], Field(default_factory=dict))},
    )


def build_patch(form: SettingsForm) -> SettingsPatch:
    """Return the settings that differ from their defaults. Raises BadInput, with the label of the field."""
    try:
        more = _MoreSettings.model_validate(getattr(form, MORE))
    except ValidationError as error:
        name, problem = ".".join(map(str, error.errors()[0]["loc"])), error.errors()[0]["msg"]
        raise BadInput(f"More settings: {name}: {problem}") from error
    values = {}
    for setting in _OFFERED.values():
        value = getattr(form if setting.name in MAIN_SETTINGS else more, setting.name)
        if value != setting.default and value not in (None, "", []):
            parsed = [parse_field(setting, one) for one in value] if isinstance(value, list) else value
            values[setting.name] = parse_field(setting, value) if isinstance(value, str) else parsed
    return make_patch(values)


def parse_instant(text: str) -> datetime | None:
    """Parse the parameter `at` of a run; None for now. Raises BadInput."""
    if not text:
        return None
    try:
        return times.parse_instant(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


async def update_forms(db: AppDatabase) -> None:
    """Update the forms in Prefect so that they offer the registered domains."""
    async with get_client() as client:
        await offer_domains(client, db)
