"""The options that the table of a domain's settings makes."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import partial, wraps
from typing import Annotated, Any

import typer

from crawler.app.settings import PARSERS, SETTINGS, Kind, Setting, SettingsPatch, parse_text, patch_of
from crawler.cli import values

PANELS = {False: "Settings of the domain", True: "What is important in the domain"}
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


NOTHING = SettingsPatch()


def with_settings(*, of_crawl: bool = False) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Give a command the options of the table in place of its parameter `patch`.

    of_crawl: only those that `recrawl crawl` offers.
    """
    offered = [setting for setting in SETTINGS if setting.of_crawl or not of_crawl]

    def decorated(command: Callable[..., int | None]) -> Callable[..., int | None]:
        @wraps(command)
        def run(**given: Any) -> int | None:
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
    elif setting.kind in PARSERS or setting.kind is Kind.TEXT or setting.refuses is not None:
        given["parser"] = values.for_typer(partial(parse_text, setting))
    return typer.Option(words, **given)
