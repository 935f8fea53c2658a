"""Form fields of settings and rules: their groups, texts and values, and the problems of what was typed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crawler.app.rules import PageRule, View, make_rule
from crawler.app.settings import (
    BY_NAME,
    SETTINGS,
    UNTAGGED_SETTINGS,
    DomainSettings,
    Setting,
    SettingKind,
    format_field,
    get_option_name,
    get_value,
    parse_field,
)
from crawler.app.tags import LayeredSettings
from crawler.errors import BadInput
from crawler.format.domain_settings import format_setting

# The groups of settings: their title, and the names of their settings.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "budget": (
        "Budget and targets",
        ("budget_per_day", "bytes_per_day", "target_freshness", "max_age", "revisit", "change_weight", "weight"),
    ),
    "politeness": ("Politeness", ("delay", "latency_factor", "parallelism", "hours")),
    "scope": ("Scope", ("seeds", "include", "exclude", "max_depth", "max_pages", "render", "language")),
    "access": (
        "Access",
        ("headers", "auth", "login", "cookies", "proxy", "ca_file", "insecure_tls", "allow_private"),
    ),
    "importance": (
        "Importance",
        (
            *("order", "url_weight", "boost", "boost_factor", "discovery_weight", "revisit_weight", "importance_mix"),
            *("external_link_weight", "internal_link_weight", "virtual_page_share", "importance_window"),
        ),
    ),
    "retention": (
        "Retention",
        ("keep_versions", "keep_daily", "keep_weekly", "keep_monthly", "keep_visits", "keep_changes", "quota"),
    ),
    "failures": ("Failures", ("failing_visits", "failing_time")),
}
# The fields of a rule. Their names are those of PageRule, or of its View.
RULE_FIELDS = tuple(
    Setting(kind, "", text, name=name, label=label, **bounds)  # type: ignore[arg-type]
    for name, kind, label, text, bounds in (
        ("pattern", SettingKind.TEXT, "Pages", "Pattern of the paths, such as /docs/, *.pdf$ or re:/20../.", {}),
        ("min_interval", SettingKind.SPAN, "Minimum interval", "Revisit no sooner than this, such as 12h.", {}),
        ("max_interval", SettingKind.SPAN, "Maximum interval", "Revisit no later than this, such as 7d.", {}),
        ("weight", SettingKind.FACTOR, "Weight", "Multiply the importance of these pages by this.", {}),
        ("max_pages", SettingKind.COUNT, "Maximum pages", "Add no more pages than this.", {}),
        ("once", SettingKind.FLAG, "Never revisit", "Fetch each of these pages only once.", {}),
        ("ignore", SettingKind.TEXTS, "Ignored elements", "CSS selectors of elements that are not compared.", {}),
        ("watch", SettingKind.TEXTS, "Watched elements", "CSS selectors; only these elements are compared.", {}),
        ("ignore_text", SettingKind.TEXTS, "Ignored text", "Regular expressions of text that is not compared.", {}),
        ("values", SettingKind.TEXTS, "Values", "Numbers to read, such as price:EUR .price; see Page rules.", {}),
        (
            *("render", SettingKind.TEXT, "Browser rendering", "Whether to render these pages in a browser."),
            {"pattern": "auto|always|never", "mismatch": "not one of auto, always, never"},
        ),
    )
)
# Settings whose default is a setting of the process.
DEFAULTS_ELSEWHERE = {
    "delay": "RECRAWL_DELAY",
    "parallelism": "RECRAWL_PARALLELISM",
    "max_depth": "RECRAWL_MAX_DEPTH",
    "max_pages": "RECRAWL_MAX_PAGES",
}
WAS = "was-"  # before the name of a field: its text when the form was shown
VIEW_FIELDS = ("ignore", "watch", "ignore_text", "values")
_LABELS = {get_option_name(each): each.label for each in SETTINGS}
_DEFAULT_SENTENCE = re.compile(r" Default:? [\w.]*\w\.(?= |$)")
_FORMATS = {
    SettingKind.SHARE: "such as 95%",
    SettingKind.BYTES: "such as 500MB",
    SettingKind.DELAY: "seconds, or such as 2m",
    SettingKind.SPAN: "such as 12h or 7d",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A form field. value: the text in it.  problem: why its text was rejected.

    default, source: the value that an empty field stands for, in words, and where it comes from.
    was: the text before the user changes it, which the form sends back; None for a field that is always sent.
    choices: the values to choose from; empty for a text.  is_long: it has a line per value.
    """

    name: str
    label: str
    help: str
    value: str = ""
    default: str = ""
    source: str = "Default"
    was: str | None = None
    example: str = ""
    choices: tuple[str, ...] = ()
    is_long: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed into a form that was rejected. problems: by the name of the field; "" for the whole form."""

    values: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


NOTHING_TYPED = Typed()


def parse_value(setting: Setting, text: str) -> Any:
    """Parse the text of a field that is not empty. Raises BadInput, with the label of the field."""
    if setting.kind is SettingKind.TEXTS:
        return tuple(parse_field(setting, line.strip()) for line in text.splitlines() if line.strip())
    return parse_field(setting, text.strip())


def list_setting_fields(
    group: str, layers: LayeredSettings, typed: Typed = NOTHING_TYPED, *, of_tag: bool = False
) -> list[Field]:
    """Return the fields of a group of settings with the own or typed values. of_tag: only those that tags can have."""
    fields = []
    for setting in (BY_NAME[name] for name in GROUPS[group][1] if not of_tag or name not in UNTAGGED_SETTINGS):
        without = layers.unset([setting.name])
        tag, is_own = without.find_tag(setting.name), setting.name in layers.own
        values = next((each.values for each in layers.tags if each.name == tag), {})
        value = values.get(setting.name, get_value(DomainSettings(), setting))
        if tag:
            shown, source = format_setting(setting.name, value) or format_field(setting, value), f"tag {tag}"
        else:
            named = setting.default_text or format_field(setting, value)
            shown, source = named or DEFAULTS_ELSEWHERE.get(setting.name, "none"), "default"
        prefix = "Own value; " if is_own and not of_tag else "From " if tag else ""
        current = _format_own(layers, setting)
        made = _make_field(setting, current, typed, default=shown)
        was = typed.values.get(f"{WAS}{setting.name}", current)
        fields.append(replace(made, source=f"{prefix}{source}" if prefix else source.capitalize(), was=was))
    return fields


def _format_own(layers: LayeredSettings, setting: Setting) -> str:
    return format_field(setting, layers.own[setting.name]) if setting.name in layers.own else ""


def list_rule_fields(typed: Typed = NOTHING_TYPED) -> list[Field]:
    """Return the fields of a new rule."""
    return [_make_field(setting, "", typed) for setting in RULE_FIELDS]


def _make_field(setting: Setting, current: str, typed: Typed, *, default: str = "") -> Field:
    choices: tuple[str, ...] = ("no", "yes") if setting.kind is SettingKind.FLAG else ()
    if re.fullmatch(r"[a-z]+(\|[a-z]+)+", setting.pattern):
        choices = ("", *setting.pattern.split("|"))
    elif choices and default:
        choices = ("", *choices)
    return Field(
        name=setting.name,
        label=setting.label,
        help=_explain(setting),
        value=typed.values.get(setting.name, current or (choices[0] if choices else "")),
        default=default,
        example=_FORMATS.get(setting.kind, ""),
        choices=choices,
        is_long=setting.kind is SettingKind.TEXTS,
        problem=typed.problems.get(setting.name, ""),
    )


def _explain(setting: Setting) -> str:
    """Return the help of a setting in the words of a form."""
    text = setting.help.replace(" Can be repeated.", " One per line.").replace("`", "")
    named = re.sub(r"--([a-z-]+)", lambda found: f"\u201c{_LABELS.get(found[1], found[0])}\u201d", text)
    return _DEFAULT_SENTENCE.sub("", named)


def parse_settings(form: Mapping[str, str], layers: LayeredSettings) -> tuple[dict[str, Any], list[str], Typed]:
    """Return the changed settings by name, the options to unset, and what was typed.

    A field that the user did not change sets nothing, so that nothing is lost that others changed meanwhile.
    """
    values, unset, problems = dict[str, Any](), list[str](), dict[str, str]()
    typed = {name: text for name, text in form.items() if name.removeprefix(WAS) in BY_NAME}
    for name in typed.keys() & BY_NAME.keys():
        setting, text = BY_NAME[name], typed[name]
        if _normalize(text) == _normalize(typed.get(f"{WAS}{name}", _format_own(layers, setting))):
            continue
        try:
            if not text.strip() or name == "seeds":  # given seeds are added to those that are left
                unset.append(get_option_name(setting))
            if text.strip():
                values[name] = parse_value(setting, text)
        except BadInput as error:
            problems[name] = str(error).removeprefix(f"{setting.label}: ")
    return values, unset, Typed(typed, problems)


def parse_rule(form: Mapping[str, str]) -> tuple[PageRule | None, Typed]:
    """Return the rule that was typed, or None, and what was typed with its problems."""
    problems, values = dict[str, str](), dict[str, Any]()
    typed = {each.name: form.get(each.name, "") for each in RULE_FIELDS}
    for setting in RULE_FIELDS:
        try:
            if typed[setting.name].strip():
                values[setting.name] = parse_value(setting, typed[setting.name])
        except BadInput as error:
            problems[setting.name] = str(error).removeprefix(f"{setting.label}: ")
    if "pattern" not in values:
        problems["pattern"] = "enter a pattern, such as /docs/"
    if problems:
        return None, Typed(typed, problems)
    if len(values) == 1:
        return None, Typed(typed, {"": "A rule needs at least one value besides the pages."})
    views = [values.pop(name, ()) for name in VIEW_FIELDS]
    try:
        return make_rule(lambda: PageRule(**values, view=View(*views))), Typed(typed)
    except BadInput as error:
        return None, Typed(typed, {"": str(error)})


def _normalize(text: str) -> str:
    """Return a text without blank lines and outer spaces."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
