"""The settings of a domain, and a table that says how each is entered, stored and displayed.

Command-line options, JSON keys, columns (models/domain.py) and docs/commands.md are derived from the table: to add a
setting, add a field and a table entry. --help imports this module, so other modules are imported only when needed.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.setting import Setting, SettingKind

if TYPE_CHECKING:
    from crawler.core.http.credentials import Credentials
    from crawler.core.http.urls import Url
    from crawler.core.opic.order import Ordering
    from crawler.core.page_rules import PageRule
    from crawler.core.rendering.mode import RenderMode

# RFC 9110, 12.5.4: a language range or "*", with an optional weight.
_WEIGHT = r"(?:[ \t]*;[ \t]*[qQ]=(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?"
LANGUAGE_PATTERN = rf"(?:[a-zA-Z]{{1,8}}(?:-[a-zA-Z0-9]{{1,8}})*|\*){_WEIGHT}"


REVISIT_PATTERN = (
    r"fixed (?!0+(?:\.0+)?[smhdw])[0-9]{1,6}(?:\.[0-9]{1,3})?[smhdw]"
    r"|[A-Za-z][A-Za-z0-9_.-]{0,62}"  # value, similarity, or a plugin, whose existence is not checked here
)


def _build_ordering() -> "Ordering":
    from crawler.core.opic.order import Ordering

    return Ordering()


class DomainSettings(Struct, frozen=True):
    """The settings of a domain that a user can set. A setting that is None or empty has no effect, except:

    If delay, parallelism, max_depth or max_pages is None, the default of the process applies (crawler/settings.py).
    If keep_monthly, keep_visits or keep_changes is None, these data are kept forever.

    Raises ValueError with a message for the user if a target is out of range, two settings cannot be combined, or two
    page rules have the same pattern.
    """

    seeds: tuple["Url", ...] = ()
    budget_per_day: int | None = None
    bytes_per_day: int | None = None
    target_freshness: float | None = None
    max_age: timedelta | None = None
    delay: timedelta | None = None
    latency_factor: float = 2.0
    hours: str = ""
    headers: tuple[str, ...] = ()
    auth: str = ""
    login: str = ""
    cookies: bool = False
    proxy: str = ""
    ca_file: str = ""
    insecure_tls: bool = False
    parallelism: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int | None = None
    max_pages: int | None = None
    weight: float = 1.0
    allow_private: bool = False
    language: str = ""
    ordering: "Ordering" = field(default_factory=_build_ordering)
    external_link_weight: float = 0.0
    change_weight: str = "magnitude"
    importance_mix: float = 0.5
    revisit: str = "value"
    render: "RenderMode" = "auto"
    internal_link_weight: float = 1.0
    virtual_page_share: float = 0.15  # = VIRTUAL_PAGE_SHARE of core.opic.opic
    importance_window: float = 24.0  # = WINDOW_PASSES of core.opic.opic
    keep_versions: int = 50
    keep_daily: timedelta = timedelta(days=90)
    keep_weekly: timedelta = timedelta(days=730)
    keep_monthly: timedelta | None = None
    keep_visits: timedelta | None = timedelta(days=730)
    keep_changes: timedelta | None = timedelta(days=730)
    quota: int | None = None
    failing_visits: int = 3
    failing_time: timedelta = timedelta(hours=6)
    rules: tuple["PageRule", ...] = ()

    def __post_init__(self) -> None:
        if self.rules:
            from crawler.core.page_rules import check_unique_patterns

            check_unique_patterns(self.rules)
        if self.insecure_tls and self.ca_file:
            raise ValueError("--ca-file and --insecure-tls cannot be combined: set one of them")
        if self.target_freshness is not None and self.max_age is not None:
            raise ValueError("a domain has only one target: set --target-freshness or --max-age, not both")
        if self.target_freshness is not None and not 0 < self.target_freshness < 1:
            raise ValueError(f"the target freshness {self.target_freshness:g} is not between 0 and 1")
        if self.max_age is not None and self.max_age <= timedelta(0):
            raise ValueError("the maximum age must be above 0")

    @property
    def uses_whole_budget(self) -> bool:
        """Return whether the domain has a budget of requests and no target, which could need fewer requests."""
        return self.budget_per_day is not None and self.target_freshness is None and self.max_age is None

    @property
    def is_special(self) -> bool:
        """Return whether requests to the domain use credentials, cookies, a proxy or special TLS settings."""
        has_secrets = self.headers or self.auth or self.login
        return bool(has_secrets or self.cookies or self.proxy or self.ca_file or self.insecure_tls)

    @property
    def credentials(self) -> "Credentials":
        """Return the credentials for the domain. Raise ValueError if a stored text cannot be parsed (see problems)."""
        from crawler.core.http.credentials import parse_credentials

        return parse_credentials(self.headers, self.auth, self.login, self.proxy)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why stored patterns and texts are invalid. A domain with any problem is not crawled."""
        from crawler.core.http.urls import list_pattern_problems

        in_rules = (problem for rule in self.rules for problem in rule.problems)
        in_texts = (list_setting_problems(setting, get_value(self, setting)) for setting in SETTINGS)
        patterns = (*self.include, *self.exclude, *self.ordering.boost)
        return (*list_pattern_problems(patterns), *in_rules, *chain.from_iterable(in_texts))


def _build_problem_check(module: str, parser: str) -> Callable[[str], str]:
    """Return a function that returns a parser's error message for a text, or "". It imports the module when called."""

    def explain_problem(text: str) -> str:
        try:
            getattr(import_module(module), parser)(text)
        except ValueError as error:
            return str(error)
        return ""

    return explain_problem


def _explain_file_problem(text: str) -> str:
    is_path = text.startswith("/") and text.isprintable()
    return "" if is_path else "the certificate file needs an absolute path, valid on the machine that crawls"


def _keep(option: str, kept: str, label: str) -> Setting:
    """Return a retention setting. kept: the end of its help text, after "How long to keep"."""
    text = f"How long to keep {kept}"
    return Setting(SettingKind.SPAN, option, text, label=label, phrase="for {}", is_crawl_option=False)


# By the name of the field in DomainSettings or in its ordering.
TABLE = {
    "seeds": Setting(SettingKind.TEXTS, "--seed URL", "Also start from this page. Can be repeated."),
    "budget_per_day": Setting(
        SettingKind.COUNT, "--budget N", "Maximum requests per UTC day.", phrase="{} requests", default_text="no limit"
    ),
    "bytes_per_day": Setting(
        SettingKind.BYTES,
        "--budget-bytes SIZE",
        "Maximum bytes received per UTC day, such as 500MB, 2GB or 1000000.",
        is_crawl_option=False,
    ),
    "target_freshness": Setting(
        SettingKind.SHARE,
        "--target-freshness SHARE",
        "Keep this share of the pages fresh, weighted by importance, such as 95%. recrawl computes how many requests "
        "this takes. Replaces --max-age. The budget is still the upper limit.",
        label="Freshness target",
        phrase="{} fresh",
        replaced_setting="max_age",
        is_crawl_option=False,
    ),
    "max_age": Setting(
        SettingKind.SPAN,
        "--max-age SPAN",
        "Visit each page at least once in this time, such as 3d. Replaces --target-freshness. The budget is still the "
        "upper limit.",
        label="Maximum age",
        phrase="every page visited within {}",
        replaced_setting="target_freshness",
        is_crawl_option=False,
    ),
    "delay": Setting(
        SettingKind.DELAY,
        "--delay SECONDS",
        "Time from the last request, or the end of the last response if that is later, to the next request; "
        "a longer Crawl-delay in robots.txt takes precedence.",
    ),
    "latency_factor": Setting(
        SettingKind.NUMBER,
        "--latency-factor NUMBER",
        "Minimum pause, as a multiple of the response time, but at most 30 s. Default 2; 0 turns it off. No effect if "
        "--delay is 0.",
        max_value=100,
        label="Latency factor",
        phrase="pause at least {} times the response time",
        default_text="pause at least twice the response time",
        is_crawl_option=False,
    ),
    "hours": Setting(
        SettingKind.TEXT,
        "--hours HOURS",
        "When to crawl, such as 'Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun'. Outside these hours nothing is fetched. "
        "A factor changes the speed: '22-06 x2; 06-22 x0.5 Europe/Vienna'. One time zone applies to all parts; default "
        "UTC.",
        label="Crawl hours",
        explain_problem=_build_problem_check("crawler.core.budget.hours", "parse_hours"),
        default_text="at any time",
        needs_rescoring=True,
    ),
    "headers": Setting(
        SettingKind.TEXTS,
        "--header HEADER",
        "Send this header to the domain, such as 'X-Key: env:DOCS_KEY'. Its value is read from an environment variable "
        "(env:NAME) or a Prefect secret block (block:NAME). Can be repeated.",
        explain_problem=_build_problem_check("crawler.core.http.credentials", "parse_header"),
        needs_full_recrawl=True,
    ),
    "auth": Setting(
        SettingKind.TEXT,
        "--auth AUTH",
        "Authenticate: 'basic env:USER env:PASSWORD' or 'bearer env:TOKEN'.",
        explain_problem=_build_problem_check("crawler.core.http.credentials", "parse_auth"),
        label="Authentication",
        needs_full_recrawl=True,
    ),
    "login": Setting(
        SettingKind.TEXT,
        "--login LOGIN",
        "Log in with a form before crawling, such as '/login user=env:DOCS_USER password=env:DOCS_PASSWORD'.",
        explain_problem=_build_problem_check("crawler.core.http.credentials", "parse_login"),
        needs_full_recrawl=True,
    ),
    "cookies": Setting(
        SettingKind.FLAG,
        "--cookies/--no-cookies",
        "Send back cookies that the domain sets during a crawl run. Always on with --login.",
        phrase="sent back",
        needs_full_recrawl=True,
    ),
    "proxy": Setting(
        SettingKind.TEXT,
        "--proxy PROXY",
        "Use an HTTP proxy that supports CONNECT, such as 'http://proxy.example:3128', optionally followed by "
        "'env:USER env:PASSWORD'.",
        explain_problem=_build_problem_check("crawler.core.http.credentials", "parse_proxy"),
    ),
    "ca_file": Setting(
        SettingKind.TEXT,
        "--ca-file PATH",
        "Trust only the certificates in this PEM file.",
        explain_problem=_explain_file_problem,
        label="Trusted certificates",
        phrase="only those in {}",
    ),
    "insecure_tls": Setting(
        SettingKind.FLAG,
        "--insecure-tls/--no-insecure-tls",
        "Do not verify TLS certificates. Others on the network can then read and change the traffic.",
        label="TLS",
        phrase="INSECURE: certificates are not verified",
    ),
    "parallelism": Setting(
        SettingKind.COUNT,
        "--parallelism N",
        "Maximum number of concurrent requests to the domain.",
        min_value=1,
        max_value=256,
    ),
    "include": Setting(
        SettingKind.TEXTS,
        "--include PATTERN",
        "Crawl only paths that match, such as '/docs/', '*.html$' or 're:/20../'. Can be repeated.",
        needs_full_recrawl=True,
    ),
    "exclude": Setting(
        SettingKind.TEXTS,
        "--exclude PATTERN",
        "Do not crawl paths that match. Can be repeated.",
        needs_full_recrawl=True,
    ),
    "max_depth": Setting(
        SettingKind.COUNT,
        "--max-depth N",
        "Maximum distance from the nearest seed, in links.",
        max_value=32_000,
        label="Maximum depth",
        needs_full_recrawl=True,
    ),
    "max_pages": Setting(
        SettingKind.COUNT,
        "--max-pages N",
        "Maximum number of pages of the domain, fetched or not. Further URLs are not added.",
        min_value=1,
        label="Maximum pages",
    ),
    "weight": Setting(
        SettingKind.FACTOR,
        "--weight NUMBER",
        "Weight of the domain in the budget that all domains share (RECRAWL_BUDGET_PER_DAY). Default 1.",
        label="Budget weight",
        default_text="1",
    ),
    "allow_private": Setting(
        SettingKind.FLAG,
        "--allow-private/--no-allow-private",
        "Allow private addresses. Use this only for your own server.",
        label="Private addresses",
        phrase="allowed",
        default_text="not allowed",
    ),
    "language": Setting(
        SettingKind.TEXT,
        "--language LIST",
        "Request pages in these languages (Accept-Language), such as 'de-AT, de;q=0.8'.",
        pattern=rf"{LANGUAGE_PATTERN}(?:[ \t]*,[ \t]*{LANGUAGE_PATTERN})*",
        mismatch="not a list of languages such as 'de-AT, de;q=0.8'",
        needs_full_recrawl=True,
    ),
    "order": Setting(
        SettingKind.TEXT,
        "--order ORDER",
        "Which new pages are fetched first: opic (most important), breadth (breadth-first), depth (depth-first), "
        "mixed (by importance and URL score, which is lower in deeper folders). Default opic.",
        pattern="opic|breadth|depth|mixed",
        column="discovery_order",
    ),
    "url_weight": Setting(
        SettingKind.NUMBER,
        "--url-weight SHARE",
        "With --order mixed, the weight of the URL score, 0 to 1. The rest is the weight of importance. Default 0.3.",
        max_value=1,
        label="URL weight",
    ),
    "boost": Setting(
        SettingKind.TEXTS, "--boost PATTERN", "Raise the importance of paths that match. Can be repeated."
    ),
    "boost_factor": Setting(
        SettingKind.FACTOR,
        "--boost-factor NUMBER",
        "Factor for the importance and the URL score of boosted pages. Default 4.",
    ),
    "discovery_weight": Setting(
        SettingKind.NUMBER,
        "--discovery-weight NUMBER",
        "Weight of new pages in the budget, relative to --revisit-weight. Also their weight when importance is "
        "distributed to all pages (--virtual-page-share). Default 1. With --revisit-weight 0, new pages always "
        "come first.",
        max_value=1000,
    ),
    "revisit_weight": Setting(
        SettingKind.NUMBER,
        "--revisit-weight NUMBER",
        "Weight of revisits in the budget, and of fetched pages when importance is distributed to all pages, relative "
        "to --discovery-weight. Default 1.",
        max_value=1000,
    ),
    "external_link_weight": Setting(
        SettingKind.NUMBER,
        "--external-link-weight NUMBER",
        "Weight of a link to another domain when a page passes importance to its links. Default 0.",
        max_value=1000,
        default_text="0",
        is_about_importance=True,
    ),
    "change_weight": Setting(
        SettingKind.TEXT,
        "--change-weight WHAT",
        "Weight of a change in the value of a visit: magnitude (how much of the page changes) or equal (all changes "
        "count the same). Default magnitude.",
        pattern="magnitude|equal",
        default_text="magnitude",
        needs_rescoring=True,
        is_crawl_option=False,
    ),
    "importance_mix": Setting(
        SettingKind.NUMBER,
        "--importance-mix SHARE",
        "How a page is weighted in the value of a visit. 0: all pages equally; 1: by importance; 0.5 (default): "
        "halfway between.",
        max_value=1,
        phrase="{} (0: equal weights, 1: by importance)",
        default_text="0.5 (0: equal weights, 1: by importance)",
        needs_rescoring=True,
        is_about_importance=True,
    ),
    "revisit": Setting(
        SettingKind.TEXT,
        "--revisit POLICY",
        "When to revisit pages: value (where a visit is expected to add most freshness), similarity (sooner if "
        "the last two versions differ more), 'fixed 7d' (at this interval), or the name of a plugin.",
        pattern=REVISIT_PATTERN,
        mismatch="not one of value, similarity, 'fixed' with an interval (fixed 7d), or the name of a plugin",
        label="Revisit policy",
        default_text="value",
        needs_rescoring=True,
        is_crawl_option=False,
    ),
    "render": Setting(
        SettingKind.TEXT,
        "--render WHEN",
        "When to render pages in a browser: auto (if scripts add content), always, or never. Default auto.",
        pattern="auto|always|never",
        label="Browser rendering",
        default_text="auto",
        needs_full_recrawl=True,
    ),
    "internal_link_weight": Setting(
        SettingKind.NUMBER,
        "--internal-link-weight NUMBER",
        "Weight of a link within the domain when a page passes importance to its links. Default 1. With 0, a "
        "page's whole importance goes to all pages (see --virtual-page-share).",
        max_value=1000,
        default_text="1",
        is_about_importance=True,
    ),
    "virtual_page_share": Setting(
        SettingKind.NUMBER,
        "--virtual-page-share SHARE",
        "Share of a page's importance that goes to all pages (through the virtual page) instead of along its links. "
        "Default 0.15.",
        max_value=1,
        phrase="{} of a page's importance",
        default_text="0.15 of a page's importance",
        is_about_importance=True,
    ),
    "importance_window": Setting(
        SettingKind.FACTOR,
        "--importance-window PASSES",
        "Length of the window over which importance is measured, in passes (docs/importance.md). Longer windows are "
        "more stable and react later. Default 24.",
        phrase="{} passes",
        default_text="24 passes",
        is_about_importance=True,
    ),
    "keep_versions": Setting(
        SettingKind.COUNT,
        "--keep-versions N",
        "Keep the newest N versions of each page, whatever their age. Default 50. `recrawl prune` deletes the "
        "texts, headers and bodies of older versions, except one per day, week and month (see --keep-daily).",
        min_value=1,
        label="Versions kept",
        phrase="the newest {}",
        is_crawl_option=False,
    ),
    "keep_daily": _keep("--keep-daily SPAN", "one older version per day. Default 90d.", "Daily versions kept"),
    "keep_weekly": _keep("--keep-weekly SPAN", "one older version per week. Default 730d.", "Weekly versions kept"),
    "keep_monthly": _keep(
        "--keep-monthly SPAN", "one older version per month. Default: forever.", "Monthly versions kept"
    ),
    "keep_visits": _keep(
        "--keep-visits SPAN", "visits. Default 730d. What recrawl learned from them is kept.", "Visits kept"
    ),
    "keep_changes": _keep("--keep-changes SPAN", "changes in the change feed. Default 730d.", "Changes kept"),
    "quota": Setting(
        SettingKind.BYTES,
        "--quota SIZE",
        "Maximum size of the domain's stored texts and bodies, such as 2GB. If they are larger, the contents of the "
        "oldest versions are deleted, but never those of the newest version of a page. Checked every hour and after "
        "`recrawl crawl`.",
        label="Storage quota",
        is_crawl_option=False,
    ),
    "failing_visits": Setting(
        SettingKind.COUNT,
        "--failing-visits N",
        "Report a page as failing after N failed visits in a row, and the domain after N suspensions in a row. "
        "Default 3.",
        min_value=1,
        label="Failing after",
        phrase="{} failed visits in a row",
        is_crawl_option=False,
    ),
    "failing_time": Setting(
        SettingKind.SPAN,
        "--failing-time SPAN",
        "Also report a page or the domain as failing if it still fails this long after its first failure. Default 6h.",
        label="Failing after a time",
        phrase="{} after the first failure",
        is_crawl_option=False,
    ),
}
DEFAULTS = dict(zip(DomainSettings.__struct_fields__, DomainSettings.__struct_defaults__, strict=True))


def _complete_setting(name: str, setting: Setting) -> Setting:
    """Return a setting of the table with its name and default, and column, key, label and mismatch unless given."""
    in_seconds = setting.kind in {SettingKind.DELAY, SettingKind.SPAN}
    is_of_ordering = name not in DEFAULTS  # a field of Ordering, which has its own defaults
    is_about_importance = setting.is_about_importance or is_of_ordering
    return replace(
        setting,
        name=name,
        default=DEFAULTS.get(name),
        mismatch=setting.mismatch or (setting.pattern and f"not one of {setting.pattern.replace('|', ', ')}"),
        label=setting.label or name.replace("_", " ").capitalize(),
        column=setting.column or name + ("_s" if in_seconds else ""),
        key=setting.key or name + ("_seconds" if in_seconds else ""),
        is_in_ordering=is_of_ordering,
        is_about_importance=is_about_importance,
        is_crawl_option=setting.is_crawl_option and not is_about_importance,
    )


SETTINGS = tuple(_complete_setting(name, setting) for name, setting in TABLE.items())
BY_NAME = {setting.name: setting for setting in SETTINGS}


def list_setting_problems(setting: Setting, value: Any) -> tuple[str, ...]:
    """Return why texts of a setting are invalid; empty if all are valid or the setting has no check."""
    texts = () if setting.explain_problem is None or not value else (value,) if isinstance(value, str) else value
    return tuple(filter(None, map(setting.explain_problem, texts))) if setting.explain_problem else ()


def get_value(domain_settings: DomainSettings, setting: Setting) -> Any:
    """Return the value of a setting, which may be a field of the settings' ordering."""
    return getattr(domain_settings.ordering if setting.is_in_ordering else domain_settings, setting.name)


def has_same_reading(one: DomainSettings, other: DomainSettings) -> bool:
    """Return whether all `needs_full_recrawl` settings are equal."""
    return all(get_value(one, each) == get_value(other, each) for each in SETTINGS if each.needs_full_recrawl)


def has_same_weighing(one: DomainSettings, other: DomainSettings) -> bool:
    """Return whether all page rules and `needs_rescoring` settings are equal."""
    weighing = [each for each in SETTINGS if each.needs_rescoring]
    return one.rules == other.rules and all(get_value(one, each) == get_value(other, each) for each in weighing)


def replace_values(domain_settings: DomainSettings, values: Mapping[str, Any]) -> DomainSettings:
    """Return the settings with new values, by setting name. Raise ValueError for an invalid value or combination."""
    ordering_values = {each.name: values[each.name] for each in SETTINGS if each.is_in_ordering and each.name in values}
    direct_values = {name: value for name, value in values.items() if name not in ordering_values}
    before = domain_settings.ordering
    if "order" in ordering_values:
        ordering_values["order"] = type(before.order)(ordering_values["order"])
    ordering = dataclasses.replace(before, **ordering_values) if ordering_values else before
    return replace(domain_settings, **direct_values, ordering=ordering)
