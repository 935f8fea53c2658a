"""Command options generated from the table of domain settings."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import partial, wraps
from typing import Annotated, Any

import typer

from crawler.app.settings import (
    SETTINGS,
    UNTAGGED_SETTINGS,
    Setting,
    SettingKind,
    SettingsPatch,
    make_patch,
    parse_text,
)
from crawler.cli import values

PANELS = {False: "Domain settings", True: "Page importance"}
TYPES: dict[SettingKind, Any] = {  # the type of the option's parsed value
    **dict.fromkeys((SettingKind.COUNT, SettingKind.BYTES), int),
    **dict.fromkeys((SettingKind.NUMBER, SettingKind.FACTOR, SettingKind.SHARE), float),
    **dict.fromkeys((SettingKind.DELAY, SettingKind.SPAN), timedelta),
    SettingKind.TEXTS: list[str],
    SettingKind.TEXT: str,
    SettingKind.FLAG: bool,
}


EMPTY_PATCH = SettingsPatch()


def add_settings_options(
    *, of_crawl: bool = False, of_tag: bool = False
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Return a decorator that replaces the parameter `patch` of a command by the options of all settings.

    of_crawl, of_tag: add only the options that `recrawl crawl` offers, or that a tag can have.
    """
    refused = UNTAGGED_SETTINGS if of_tag else {each.name for each in SETTINGS if of_crawl and not each.is_crawl_option}
    offered = [setting for setting in SETTINGS if setting.name not in refused]

    def decorate(command: Callable[..., int | None]) -> Callable[..., int | None]:
        @wraps(command)
        def run_command(**kwargs: Any) -> int | None:
            typed = {setting.name: kwargs.pop(setting.name) for setting in offered}
            return command(**kwargs, patch=make_patch(typed))

        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for each in signature.parameters.values():
            parameters += map(_make_parameter, offered) if each.name == "patch" else [each]
        run_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
        return run_command

    return decorate


def _make_parameter(setting: Setting) -> inspect.Parameter:
    # The annotation is built at run time, which the type checker cannot follow.
    annotation = Annotated[TYPES[setting.kind] | None, _make_option(setting)]  # type: ignore[valid-type,name-defined]
    return inspect.Parameter(setting.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


def _make_option(setting: Setting) -> Any:
    words, _, metavar = setting.option.partition(" ")
    kwargs: dict[str, Any] = {"help": setting.help, "rich_help_panel": PANELS[setting.is_about_importance]}
    if metavar:
        kwargs["metavar"] = metavar
    if setting.kind is not SettingKind.FLAG:
        kwargs["parser"] = values.make_typer_parser(partial(parse_text, setting))
    return typer.Option(words, **kwargs)
