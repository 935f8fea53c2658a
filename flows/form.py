"""The parameter forms of the Prefect UI: domain settings, the parameter `at`, and the list of domains."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from prefect.client.orchestration import get_client
from pydantic import BaseModel, ConfigDict, Field, create_model

from crawler import times
from crawler.app.database import AppDatabase
from crawler.app.settings import SETTINGS, Setting, SettingKind, SettingsPatch, make_patch, parse_field
from crawler.errors import BadInput
from crawler.runtime.prefect.api import offer_domains

_CHOICE = re.compile(r"[a-z]+(\|[a-z]+)+")  # a pattern that is a list of words
# Typed as in the command: 95%, 500MB, 3d. Empty means the default.
_TEXT_KINDS = {SettingKind.SHARE, SettingKind.BYTES, SettingKind.DELAY, SettingKind.SPAN}


def _build_field(setting: Setting, position: int) -> tuple[Any, Any]:
    """Return the type and the Field of a setting. position: its position in the form."""
    about: dict[str, Any] = {"title": setting.label, "description": setting.help}
    about["json_schema_extra"] = {"position": position}
    match setting.kind:
        case SettingKind.COUNT:
            return int | None, Field(None, ge=int(setting.min_value), le=int(setting.max_value), **about)
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


if TYPE_CHECKING:

    class SettingsForm(BaseModel):
        """The settings of a domain, by name."""

else:
    SettingsForm = create_model(
        "SettingsForm",
        __config__=ConfigDict(extra="forbid"),
        __doc__="Settings of a domain. Unchanged fields have their default values.",
        **{each.name: _build_field(each, n) for n, each in enumerate(SETTINGS) if not each.is_about_importance},
    )


def build_patch(form: SettingsForm) -> SettingsPatch:
    """Return the settings that differ from their defaults. Raises BadInput, with the label of the field."""
    values = {}
    for setting in SETTINGS:
        value = getattr(form, setting.name, setting.default)
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
