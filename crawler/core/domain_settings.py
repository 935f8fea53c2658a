"""The settings of a domain: a value, and a table of how each setting is typed, stored and shown.

The command's options, JSON, the columns (models/domain.py) and docs/commands.md follow from the table: the next setting
is a field and an entry here. Nothing heavy is imported: --help reads this.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawler.core.setting import Setting, SettingKind

if TYPE_CHECKING:
    from crawler.core.http.credentials import Credentials
    from crawler.core.http.urls import Url
    from crawler.core.opic.order import Ordering
    from crawler.core.page_rules import PageRule
    from crawler.core.rendering.memory import RenderMode

# RFC 9110, 12.5.4: a language range, or any, with the weight of the user's preference.
LANGUAGE_PATTERN = (
    r"(?:[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*|\*)"
    r"(?:[ \t]*;[ \t]*[qQ]=(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?"
)


REVISIT_PATTERN = (
    r"fixed (?!0+(?:\.0+)?[smhdw])[0-9]{1,6}(?:\.[0-9]{1,3})?[smhdw]"
    r"|[A-Za-z][A-Za-z0-9_.-]{0,62}"  # value, similarity, or a plugin; who knows the plugins asks whether there is one
)


def _build_ordering() -> "Ordering":
    from crawler.core.opic.order import Ordering

    return Ordering()


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """The settings of a domain that its user may give. None and empty mean the defaults.

    rules: about pages of a pattern, each pattern once.
    ValueError, a sentence for the user, for two targets, an impossible one, or two rules of one pattern.
    """

    seeds: tuple["Url", ...] = ()
    budget_per_day: int | None = None
    bytes_per_day: int | None = None
    target_freshness: float | None = None
    max_age: timedelta | None = None
    delay: timedelta | None = None
    latency_factor: float = 2.0  # LATENCY_FACTOR
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
    virtual_page_share: float = 0.15  # VIRTUAL_PAGE_SHARE
    importance_window: float = 24.0  # WINDOW_PASSES
    keep_versions: int = 50
    keep_daily: timedelta = timedelta(days=90)
    keep_weekly: timedelta = timedelta(days=730)
    keep_monthly: timedelta | None = None
    keep_visits: timedelta | None = timedelta(days=730)
    keep_changes: timedelta | None = timedelta(days=730)
    quota: int | None = None
    rules: tuple["PageRule", ...] = ()

    def __post_init__(self) -> None:
        if self.rules:
            from crawler.core.page_rules import check_unique_patterns

            check_unique_patterns(self.rules)
        if self.insecure_tls and self.ca_file:
            raise ValueError("either certificates are checked by --ca-file, or with --insecure-tls not at all")
        if self.target_freshness is not None and self.max_age is not None:
            raise ValueError("a domain has one target, a share that is fresh or an age, and not both")
        if self.target_freshness is not None and not 0 < self.target_freshness < 1:
            raise ValueError(f"a target of {self.target_freshness:g} is not between 0 and 1")
        if self.max_age is not None and self.max_age <= timedelta(0):
            raise ValueError("a target age must be above 0")

    @property
    def uses_whole_budget(self) -> bool:
        """Whether each request of its budget is made: no target says how many fewer would do."""
        return self.budget_per_day is not None and self.target_freshness is None and self.max_age is None

    @property
    def is_special(self) -> bool:
        """The domain is asked in another way than others: it is shown something, or another way leads there."""
        return bool(
            self.headers or self.auth or self.login or self.cookies or self.proxy or self.ca_file or self.insecure_tls
        )

    @property
    def credentials(self) -> "Credentials":
        """What the domain is shown. ValueError for what was stored and cannot be read (see problems)."""
        from crawler.core.http.credentials import parse_credentials

        return parse_credentials(self.headers, self.auth, self.login, self.proxy)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why patterns and texts that were stored before are not used; a domain with one is not crawled."""
        from crawler.core.http.urls import list_refusals

        of_rules = (problem for rule in self.rules for problem in rule.problems)
        of_texts = (
            refusal for setting in SETTINGS for refusal in list_setting_refusals(setting, get_value(self, setting))
        )
        return (*list_refusals((*self.include, *self.exclude, *self.ordering.boost)), *of_rules, *of_texts)


def _build_refusal_check(module: str, parser: str) -> Callable[[str], str]:
    """Return what says why a parser refuses a text, or "". The module is imported when it is first asked."""

    def explain_refusal(text: str) -> str:
        try:
            getattr(import_module(module), parser)(text)
        except ValueError as error:
            return str(error)
        return ""

    return explain_refusal


def _explain_file_refusal(text: str) -> str:
    is_path = text.startswith("/") and text.isprintable()
    return "" if is_path else "a file of certificates is named by its whole path, as it is where it is crawled"


def _build_retention_setting(option: str, help_text: str, label: str) -> Setting:
    """Return the setting that says for how long something of the past is kept. help_text: its help."""
    return Setting(SettingKind.SPAN, option, help_text, label=label, phrase="for {}", is_crawl_option=False)


# How each setting is typed, stored and shown, by the name of its field in DomainSettings, or else in its ordering.
TABLE = {
    "seeds": Setting(
        SettingKind.TEXTS, "--seed URL", "Begin here too, beside the root; may be repeated.", label="Seeds"
    ),
    "budget_per_day": Setting(
        SettingKind.COUNT,
        "--budget N",
        "Requests per UTC day.",
        label="Budget per day",
        phrase="{} requests",
        default_text="no limit",
    ),
    "bytes_per_day": Setting(
        SettingKind.BYTES,
        "--budget-bytes SIZE",
        "Bytes received per UTC day: 500MB, 2GB, or a plain number.",
        label="Bytes per day",
        is_crawl_option=False,
    ),
    "target_freshness": Setting(
        SettingKind.SHARE,
        "--target-freshness SHARE",
        "So much of the domain, by importance, is to be fresh: 95%. The plan finds the requests that takes.",
        label="Target",
        phrase="{} fresh",
        replaced_setting="max_age",
        is_crawl_option=False,
    ),
    "max_age": Setting(
        SettingKind.SPAN,
        "--max-age SPAN",
        "No page is to be longer unseen: 3d. Instead of --target-freshness; a budget caps both.",
        label="Target",
        phrase="no page older than {}",
        replaced_setting="target_freshness",
        is_crawl_option=False,
    ),
    "delay": Setting(
        SettingKind.DELAY,
        "--delay SECONDS",
        "From the end of an answer to the next request; the delay of robots.txt holds where it is longer.",
        label="Delay",
    ),
    "latency_factor": Setting(
        SettingKind.NUMBER,
        "--latency-factor NUMBER",
        "A pause is at least so many times what answers take, up to 30 s, so that a slow server gets longer ones; "
        "2 unless said. 0: never. Without a delay there is no pause to lengthen.",
        max_value=100,
        label="Slow server",
        phrase="pauses for {} times what its answers take",
        default_text="pauses for twice what its answers take",
        is_crawl_option=False,
    ),
    "hours": Setting(
        SettingKind.TEXT,
        "--hours HOURS",
        "When it may be asked, and how fast: 'Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun', or '22-06 x2; 06-22 "
        "x0.5 Europe/Vienna' for twice as fast by night. What is not named is closed.",
        explain_refusal=_build_refusal_check("crawler.core.budget.hours", "parse_hours"),
        label="Hours",
        default_text="at any time",
        needs_reweighing=True,
    ),
    "headers": Setting(
        SettingKind.TEXTS,
        "--header HEADER",
        "Send this header to the domain, 'X-Key: env:DOCS_KEY'; its value stands in the environment (env:NAME) or "
        "in a Prefect secret block (block:NAME); may be repeated.",
        explain_refusal=_build_refusal_check("crawler.core.http.credentials", "parse_header"),
        label="Headers",
        needs_full_recrawl=True,
    ),
    "auth": Setting(
        SettingKind.TEXT,
        "--auth AUTH",
        "Authenticate: 'basic env:USER env:PASSWORD' or 'bearer env:TOKEN'.",
        explain_refusal=_build_refusal_check("crawler.core.http.credentials", "parse_auth"),
        label="Authentication",
        needs_full_recrawl=True,
    ),
    "login": Setting(
        SettingKind.TEXT,
        "--login LOGIN",
        "Log in by a form before pages are asked: '/login user=env:DOCS_USER password=env:DOCS_PASSWORD'.",
        explain_refusal=_build_refusal_check("crawler.core.http.credentials", "parse_login"),
        label="Login",
        needs_full_recrawl=True,
    ),
    "cookies": Setting(
        SettingKind.FLAG,
        "--cookies/--no-cookies",
        "Send back the cookies that it sets, while a crawl runs; with --login always.",
        label="Cookies",
        phrase="sent back",
        needs_full_recrawl=True,
    ),
    "proxy": Setting(
        SettingKind.TEXT,
        "--proxy PROXY",
        "Ask by way of an http proxy that tunnels: 'http://proxy.example:3128', and 'env:USER env:PASSWORD' after it.",
        explain_refusal=_build_refusal_check("crawler.core.http.credentials", "parse_proxy"),
        label="Proxy",
    ),
    "ca_file": Setting(
        SettingKind.TEXT,
        "--ca-file PATH",
        "Trust the certificates in this file (PEM), and no others.",
        explain_refusal=_explain_file_refusal,
        label="Certificates",
        phrase="only those in {}",
    ),
    "insecure_tls": Setting(
        SettingKind.FLAG,
        "--insecure-tls/--no-insecure-tls",
        "Do not ask whose certificate it is: anybody on the way may read and change what is sent.",
        label="TLS",
        phrase="INSECURE: no certificate is checked",
    ),
    "parallelism": Setting(
        SettingKind.COUNT, "--parallelism N", "Requests at a time.", min_value=1, max_value=256, label="Parallelism"
    ),
    "include": Setting(
        SettingKind.TEXTS,
        "--include PATTERN",
        "Only paths like '/docs/', '*.html$' or 're:/20../'; may be repeated.",
        label="Include",
        needs_full_recrawl=True,
    ),
    "exclude": Setting(
        SettingKind.TEXTS,
        "--exclude PATTERN",
        "No paths like this; may be repeated.",
        label="Exclude",
        needs_full_recrawl=True,
    ),
    "max_depth": Setting(
        SettingKind.COUNT,
        "--max-depth N",
        "Links away from the nearest seed.",
        max_value=32_000,
        label="Depth",
        needs_full_recrawl=True,
    ),
    "max_pages": Setting(SettingKind.COUNT, "--max-pages N", "Pages to keep.", min_value=1, label="Pages at most"),
    "weight": Setting(
        SettingKind.FACTOR,
        "--weight NUMBER",
        "Worth beside other domains; 1 unless said.",
        label="Weight",
        default_text="1",
    ),
    "allow_private": Setting(
        SettingKind.FLAG,
        "--allow-private/--no-allow-private",
        "It is your own server: private addresses may be asked.",
        label="Private addresses",
        phrase="allowed",
        default_text="refused",
    ),
    "language": Setting(
        SettingKind.TEXT,
        "--language LIST",
        "Ask for pages in these languages (Accept-Language): 'de-AT, de;q=0.8'.",
        pattern=rf"{LANGUAGE_PATTERN}(?:[ \t]*,[ \t]*{LANGUAGE_PATTERN})*",
        mismatch="no list of languages such as 'de-AT, de;q=0.8'",
        label="Language",
        needs_full_recrawl=True,
    ),
    "order": Setting(
        SettingKind.TEXT,
        "--order ORDER",
        "Which new pages come first: opic (most cash), breadth (by levels), depth (depth first), mixed (cash and URL).",
        pattern="opic|breadth|depth|mixed",
        mismatch="none of opic, breadth, depth, mixed",
        column="discovery_order",
    ),
    "url_weight": Setting(
        SettingKind.NUMBER, "--url-weight SHARE", "How much the URL says in order mixed.", max_value=1
    ),
    "boost": Setting(SettingKind.TEXTS, "--boost PATTERN", "Paths that matter more to you; may be repeated."),
    "boost_factor": Setting(
        SettingKind.FACTOR,
        "--boost-factor NUMBER",
        "How many times as important a boosted page is at least, and its URL scores.",
    ),
    "discovery_weight": Setting(
        SettingKind.NUMBER,
        "--discovery-weight NUMBER",
        "Weight of new pages beside revisits, in requests and importance; 10 to 0: new pages first.",
        max_value=1000,
    ),
    "revisit_weight": Setting(
        SettingKind.NUMBER,
        "--revisit-weight NUMBER",
        "Weight of revisits beside new pages; 1 each unless said.",
        max_value=1000,
    ),
    "external_link_weight": Setting(
        SettingKind.NUMBER,
        "--external-link-weight NUMBER",
        "As how many links within the domain one to another domain counts; 0 unless said.",
        max_value=1000,
        label="External links",
        phrase="count {} each",
        default_text="do not count",
        is_about_importance=True,
    ),
    "change_weight": Setting(
        SettingKind.TEXT,
        "--change-weight WHAT",
        "What a change counts: magnitude (by how much of the page it changes) or equal (each the same).",
        pattern="magnitude|equal",
        mismatch="neither amount nor changes",
        label="Changes count",
        phrase="as {}",
        default_text="by their magnitude",
        needs_reweighing=True,
        is_crawl_option=False,
    ),
    "importance_mix": Setting(
        SettingKind.NUMBER,
        "--importance-mix SHARE",
        "How far a page's importance decides how often it is visited: 0 (all pages alike) to 1 (importance alone); "
        "0.5 unless said.",
        max_value=1,
        label="Importance decides",
        phrase="{} of the value of a visit",
        default_text="0.5 of the value of a visit",
        needs_reweighing=True,
        is_about_importance=True,
    ),
    "revisit": Setting(
        SettingKind.TEXT,
        "--revisit POLICY",
        "When pages are visited again: value (when a visit is worth it), similarity (sooner the less alike two "
        "versions were), 'fixed 7d' (each after so long), or the name of a plugin.",
        pattern=REVISIT_PATTERN,
        mismatch="none of value, similarity, fixed with a span such as 'fixed 7d', and the name of a plugin",
        label="Looked at again",
        phrase="by policy: {}",
        default_text="by value",
        needs_reweighing=True,
        is_crawl_option=False,
    ),
    "render": Setting(
        SettingKind.TEXT,
        "--render WHEN",
        "Pages in a browser: auto (where their scripts add what is kept), always, or never.",
        pattern="auto|always|never",
        mismatch="none of auto, always, never",
        label="In a browser",
        default_text="where it adds anything",
        needs_full_recrawl=True,
    ),
    "internal_link_weight": Setting(
        SettingKind.NUMBER,
        "--internal-link-weight NUMBER",
        "What a link within the domain counts beside those; 1 unless said. 0: no link passes importance on.",
        max_value=1000,
        label="Internal links",
        phrase="count {} each",
        default_text="count 1 each",
        is_about_importance=True,
    ),
    "virtual_page_share": Setting(
        SettingKind.NUMBER,
        "--virtual-page-share SHARE",
        "Share of a page's cash that goes to all pages by the virtual page, and not along its links; 0.15 unless said.",
        max_value=1,
        label="Virtual page share",
        phrase="{} of each visit's cash",
        default_text="0.15 of each visit's cash",
        is_about_importance=True,
    ),
    "importance_window": Setting(
        SettingKind.FACTOR,
        "--importance-window PASSES",
        "How far back importance looks, in passes of the domain's clock; 24 unless said.",
        label="Window",
        phrase="{} passes",
        default_text="24 passes",
        is_about_importance=True,
    ),
    "keep_versions": Setting(
        SettingKind.COUNT,
        "--keep-versions N",
        "Keep the newest N versions of each page, however old; 50 unless said. Of older ones recrawl prune thins "
        "out texts and bodies.",
        min_value=1,
        label="Versions kept",
        phrase="the newest {}",
        is_crawl_option=False,
    ),
    "keep_daily": _build_retention_setting(
        "--keep-daily SPAN", "Of versions before those the last of each day, for so long; 90d unless said.", "One a day"
    ),
    "keep_weekly": _build_retention_setting(
        "--keep-weekly SPAN", "And the last of each week, for so long; 730d unless said.", "One a week"
    ),
    "keep_monthly": _build_retention_setting(
        "--keep-monthly SPAN", "And the last of each month, for so long; for ever unless said.", "One a month"
    ),
    "keep_visits": _build_retention_setting(
        "--keep-visits SPAN",
        "How long each look is remembered; 730d unless said. What was learnt from it stays.",
        "Looks kept",
    ),
    "keep_changes": _build_retention_setting(
        "--keep-changes SPAN", "How long the change feed goes back; 730d unless said.", "Changes kept"
    ),
    "quota": Setting(
        SettingKind.BYTES,
        "--quota SIZE",
        "Texts and bodies of the domain may take so much: 2GB. Beyond it the oldest versions go first, never a "
        "page's newest: every hour, and after recrawl crawl.",
        label="Quota",
        is_crawl_option=False,
    ),
}
DEFAULTS = {each.name: each.default for each in fields(DomainSettings)}


def _complete_setting(name: str, setting: Setting) -> Setting:
    """Return a setting of the table with its name, its default, and its names elsewhere."""
    in_seconds = setting.kind in {SettingKind.DELAY, SettingKind.SPAN}
    is_of_ordering = name not in DEFAULTS  # whose defaults are its own
    of_importance = setting.is_about_importance or is_of_ordering
    return replace(
        setting,
        name=name,
        default=DEFAULTS.get(name),
        column=setting.column or name + ("_s" if in_seconds else ""),
        key=setting.key or name + ("_seconds" if in_seconds else ""),
        is_in_ordering=is_of_ordering,
        is_about_importance=of_importance,
        is_crawl_option=setting.is_crawl_option and not of_importance,
    )


SETTINGS = tuple(_complete_setting(name, setting) for name, setting in TABLE.items())
BY_NAME = {setting.name: setting for setting in SETTINGS}


def list_setting_refusals(setting: Setting, value: Any) -> tuple[str, ...]:
    """Why the texts of a setting cannot be used; none where it says nothing of that."""
    texts = () if setting.explain_refusal is None or not value else (value,) if isinstance(value, str) else value
    return tuple(filter(None, map(setting.explain_refusal, texts))) if setting.explain_refusal else ()


def get_value(domain_settings: DomainSettings, setting: Setting) -> Any:
    """The value that a setting has."""
    return getattr(domain_settings.ordering if setting.is_in_ordering else domain_settings, setting.name)


def has_same_reading(one: DomainSettings, other: DomainSettings) -> bool:
    """Whether a page that was read under the one says under the other what it said then."""
    return all(get_value(one, each) == get_value(other, each) for each in SETTINGS if each.needs_full_recrawl)


def has_same_weighing(one: DomainSettings, other: DomainSettings) -> bool:
    """Whether nothing by which pages are weighed and due is another: neither rules nor what the table marks so."""
    return one.rules == other.rules and all(
        get_value(one, each) == get_value(other, each) for each in SETTINGS if each.needs_reweighing
    )


def replace_values(domain_settings: DomainSettings, values: Mapping[str, Any]) -> DomainSettings:
    """The settings with these values, by name, in place of what was there. ValueError for what cannot be."""
    ordering_values = {
        name: value for name, value in values.items() if name in BY_NAME and BY_NAME[name].is_in_ordering
    }
    direct = {name: value for name, value in values.items() if name not in ordering_values}
    before = domain_settings.ordering
    if "order" in ordering_values:
        ordering_values["order"] = type(before.order)(ordering_values["order"])
    return replace(
        domain_settings, **direct, ordering=replace(before, **ordering_values) if ordering_values else before
    )
