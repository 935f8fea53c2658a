"""The settings of a domain: a value, and a table of how each setting is typed, stored and shown.

The command's options, JSON, the columns (models/domain.py) and docs/commands.md follow from the table: the next setting
is a field and an entry here. Nothing heavy is imported: --help reads this.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawler.core.setting import Kind, Setting

if TYPE_CHECKING:
    from crawler.core.http.credentials import Credentials
    from crawler.core.http.urls import Url
    from crawler.core.opic.order import Ordering
    from crawler.core.page_rules import PageRule
    from crawler.core.rendering.memory import RenderMode

# RFC 9110, 12.5.4: a language range, or any, with the weight of the user's preference.
LANGUAGE = (
    r"(?:[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*|\*)"
    r"(?:[ \t]*;[ \t]*[qQ]=(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?"
)


REVISIT = (
    r"fixed (?!0+(?:\.0+)?[smhdw])[0-9]{1,6}(?:\.[0-9]{1,3})?[smhdw]"
    r"|[A-Za-z][A-Za-z0-9_.-]{0,62}"  # price, similarity, or a plugin; who knows the plugins asks whether there is one
)


def _usual_ordering() -> "Ordering":
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
    target_age: timedelta | None = None
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
    ordering: "Ordering" = field(default_factory=_usual_ordering)
    external_links: float = 0.0
    value: str = "amount"
    importance_mix: float = 0.5
    revisit: str = "price"
    render: "RenderMode" = "auto"
    internal_links: float = 1.0
    reserve_share: float = 0.15  # RESERVE_SHARE
    window_passes: float = 24.0  # WINDOW_PASSES
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
            from crawler.core.page_rules import refuse_twins

            refuse_twins(self.rules)
        if self.insecure_tls and self.ca_file:
            raise ValueError("either certificates are checked by --ca-file, or with --insecure-tls not at all")
        if self.target_freshness is not None and self.target_age is not None:
            raise ValueError("a domain has one target, a share that is fresh or an age, and not both")
        if self.target_freshness is not None and not 0 < self.target_freshness < 1:
            raise ValueError(f"a target of {self.target_freshness:g} is not between 0 and 1")
        if self.target_age is not None and self.target_age <= timedelta(0):
            raise ValueError("a target age must be above 0")

    @property
    def uses_whole_budget(self) -> bool:
        """Whether each request of its budget is made: no target says how many fewer would do."""
        return self.budget_per_day is not None and self.target_freshness is None and self.target_age is None

    @property
    def is_special(self) -> bool:
        """The domain is asked in another way than others: it is shown something, or another way leads there."""
        return bool(
            self.headers or self.auth or self.login or self.cookies or self.proxy or self.ca_file or self.insecure_tls
        )

    @property
    def credentials(self) -> "Credentials":
        """What the domain is shown. ValueError for what was stored and cannot be read (see refusals)."""
        from crawler.core.http.credentials import credentials_in

        return credentials_in(self.headers, self.auth, self.login, self.proxy)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why patterns and texts that were stored before are not used; a domain with one is not crawled."""
        from crawler.core.http.urls import refusals_of

        of_rules = (refusal for rule in self.rules for refusal in rule.refusals)
        of_texts = (refusal for setting in SETTINGS for refusal in refusals_in(setting, value_of(self, setting)))
        return (*refusals_of((*self.include, *self.exclude, *self.ordering.favour)), *of_rules, *of_texts)


def _refusal_by(module: str, parser: str) -> Callable[[str], str]:
    """Return what says why a parser refuses a text, or "". The module is imported when it is first asked."""

    def refusal_of(text: str) -> str:
        try:
            getattr(import_module(module), parser)(text)
        except ValueError as error:
            return str(error)
        return ""

    return refusal_of


def _refuse_file(text: str) -> str:
    is_path = text.startswith("/") and text.isprintable()
    return "" if is_path else "a file of certificates is named by its whole path, as it is where it is crawled"


def _kept_for(option: str, told: str, label: str) -> Setting:
    """Return the setting that says for how long something of the past is kept. told: its help."""
    return Setting(Kind.SPAN, option, told, label=label, words="for {}", of_crawl=False)


# How each setting is typed, stored and shown, by the name of its field in DomainSettings, or else in its ordering.
TABLE = {
    "seeds": Setting(Kind.TEXTS, "--seed URL", "Begin here too, beside the root; may be repeated.", label="Seeds"),
    "budget_per_day": Setting(
        Kind.COUNT, "--budget N", "Requests per UTC day.", label="Budget per day", words="{} requests", unset="no limit"
    ),
    "bytes_per_day": Setting(
        Kind.BYTES,
        "--bytes SIZE",
        "Bytes received per UTC day: 500MB, 2GB, or a plain number.",
        label="Bytes per day",
        of_crawl=False,
    ),
    "target_freshness": Setting(
        Kind.SHARE,
        "--fresh SHARE",
        "So much of the domain, by importance, is to be fresh: 95%. The plan finds the requests that takes.",
        label="Target",
        words="{} fresh",
        instead_of="target_age",
        of_crawl=False,
    ),
    "target_age": Setting(
        Kind.SPAN,
        "--no-older-than SPAN",
        "No page is to be longer unseen: 3d. Instead of --fresh; a budget caps both.",
        label="Target",
        words="no page older than {}",
        instead_of="target_freshness",
        of_crawl=False,
    ),
    "delay": Setting(
        Kind.DELAY,
        "--delay SECONDS",
        "From the end of an answer to the next request; the delay of robots.txt holds where it is longer.",
        label="Delay",
    ),
    "latency_factor": Setting(
        Kind.NUMBER,
        "--latency-factor NUMBER",
        "A pause is at least so many times what answers take, up to 30 s, so that a slow server gets longer ones; "
        "2 unless said. 0: never. Without a delay there is no pause to lengthen.",
        most=100,
        label="Slow server",
        words="pauses for {} times what its answers take",
        unset="pauses for twice what its answers take",
        of_crawl=False,
    ),
    "hours": Setting(
        Kind.TEXT,
        "--hours HOURS",
        "When it may be asked, and how fast: 'Mon-Fri 22:00-06:00 Europe/Vienna; Sat-Sun', or '22-06 x2; 06-22 "
        "x0.5 Europe/Vienna' for twice as fast by night. What is not named is closed.",
        refuses=_refusal_by("crawler.core.budget.hours", "parse_hours"),
        label="Hours",
        unset="at any time",
        reprices=True,
    ),
    "headers": Setting(
        Kind.TEXTS,
        "--header HEADER",
        "Send this header to the domain, 'X-Key: env:DOCS_KEY'; its value stands in the environment (env:NAME) or "
        "in a Prefect secret block (block:NAME); may be repeated.",
        refuses=_refusal_by("crawler.core.http.credentials", "parse_header"),
        label="Headers",
        rereads=True,
    ),
    "auth": Setting(
        Kind.TEXT,
        "--auth AUTH",
        "Authenticate: 'basic env:USER env:PASSWORD' or 'bearer env:TOKEN'.",
        refuses=_refusal_by("crawler.core.http.credentials", "parse_auth"),
        label="Authentication",
        rereads=True,
    ),
    "login": Setting(
        Kind.TEXT,
        "--login LOGIN",
        "Log in by a form before pages are asked: '/login user=env:DOCS_USER password=env:DOCS_PASSWORD'.",
        refuses=_refusal_by("crawler.core.http.credentials", "parse_login"),
        label="Login",
        rereads=True,
    ),
    "cookies": Setting(
        Kind.FLAG,
        "--cookies/--no-cookies",
        "Send back the cookies that it sets, while a crawl runs; with --login always.",
        label="Cookies",
        words="sent back",
        rereads=True,
    ),
    "proxy": Setting(
        Kind.TEXT,
        "--proxy PROXY",
        "Ask by way of an http proxy that tunnels: 'http://proxy.example:3128', and 'env:USER env:PASSWORD' after it.",
        refuses=_refusal_by("crawler.core.http.credentials", "parse_proxy"),
        label="Proxy",
    ),
    "ca_file": Setting(
        Kind.TEXT,
        "--ca-file PATH",
        "Trust the certificates in this file (PEM), and no others.",
        refuses=_refuse_file,
        label="Certificates",
        words="only those in {}",
    ),
    "insecure_tls": Setting(
        Kind.FLAG,
        "--insecure-tls/--no-insecure-tls",
        "Do not ask whose certificate it is: anybody on the way may read and change what is sent.",
        label="TLS",
        words="INSECURE: no certificate is checked",
    ),
    "parallelism": Setting(
        Kind.COUNT, "--parallelism N", "Requests at a time.", least=1, most=256, label="Parallelism"
    ),
    "include": Setting(
        Kind.TEXTS,
        "--include PATTERN",
        "Only paths like '/docs/', '*.html$' or 're:/20../'; may be repeated.",
        label="Include",
        rereads=True,
    ),
    "exclude": Setting(
        Kind.TEXTS, "--exclude PATTERN", "No paths like this; may be repeated.", label="Exclude", rereads=True
    ),
    "max_depth": Setting(
        Kind.COUNT, "--depth N", "Links away from the nearest seed.", most=32_000, label="Depth", rereads=True
    ),
    "max_pages": Setting(Kind.COUNT, "--max-pages N", "Pages to keep.", least=1, label="Pages at most"),
    "weight": Setting(
        Kind.FACTOR, "--weight NUMBER", "Worth beside other domains; 1 unless said.", label="Weight", unset="1"
    ),
    "allow_private": Setting(
        Kind.FLAG,
        "--allow-private/--no-allow-private",
        "It is your own server: private addresses may be asked.",
        label="Private addresses",
        words="allowed",
        unset="refused",
    ),
    "language": Setting(
        Kind.TEXT,
        "--language LIST",
        "Ask for pages in these languages (Accept-Language): 'de-AT, de;q=0.8'.",
        pattern=rf"{LANGUAGE}(?:[ \t]*,[ \t]*{LANGUAGE})*",
        misfit="no list of languages such as 'de-AT, de;q=0.8'",
        label="Language",
        rereads=True,
    ),
    "order": Setting(
        Kind.TEXT,
        "--order ORDER",
        "Which new pages come first: opic (most cash), breadth (by levels), depth (depth first), mixed (cash and URL).",
        pattern="opic|breadth|depth|mixed",
        misfit="none of opic, breadth, depth, mixed",
        column="discovery_order",
    ),
    "url_share": Setting(Kind.NUMBER, "--url-share SHARE", "How much the URL says in order mixed.", most=1),
    "favour": Setting(Kind.TEXTS, "--favour PATTERN", "Paths that you favour; may be repeated."),
    "favour_by": Setting(
        Kind.FACTOR,
        "--favour-by NUMBER",
        "How many times as much a favoured page is paid by the reserve, and its URL scores.",
    ),
    "discovery": Setting(
        Kind.NUMBER,
        "--discovery-weight NUMBER",
        "Weight of new pages beside revisits, in requests and importance; 10 to 0: new pages first.",
        most=1000,
        column="discovery_weight",
    ),
    "refresh": Setting(
        Kind.NUMBER,
        "--refresh-weight NUMBER",
        "Weight of revisits beside new pages; 1 each unless said.",
        most=1000,
        column="refresh_weight",
    ),
    "external_links": Setting(
        Kind.NUMBER,
        "--external-links NUMBER",
        "As how many links within the domain one to another domain counts; 0 unless said.",
        most=1000,
        label="External links",
        words="count {} each",
        unset="do not count",
        of_importance=True,
    ),
    "value": Setting(
        Kind.TEXT,
        "--value WHAT",
        "What a change counts: amount (by how much of the page it changes) or changes (each alike).",
        pattern="amount|changes",
        misfit="neither amount nor changes",
        label="Changes count",
        words="as {}",
        unset="by their amount",
        reprices=True,
        of_crawl=False,
    ),
    "importance_mix": Setting(
        Kind.NUMBER,
        "--importance-mix SHARE",
        "How far a page's importance decides how often it is visited: 0 (all pages alike) to 1 (importance alone); "
        "0.5 unless said.",
        most=1,
        label="Importance decides",
        words="{} of the value of a visit",
        unset="0.5 of the value of a visit",
        reprices=True,
        of_importance=True,
    ),
    "revisit": Setting(
        Kind.TEXT,
        "--revisit POLICY",
        "When pages are looked at again: price (when a look is worth it), similarity (sooner the less alike two "
        "versions were), 'fixed 7d' (each after so long), or the name of a plugin.",
        pattern=REVISIT,
        misfit="none of price, similarity, fixed with a span such as 'fixed 7d', and the name of a plugin",
        label="Looked at again",
        words="by policy: {}",
        unset="by price",
        reprices=True,
        of_crawl=False,
    ),
    "render": Setting(
        Kind.TEXT,
        "--render WHEN",
        "Pages in a browser: auto (where their scripts add what is kept), always, or never.",
        pattern="auto|always|never",
        misfit="none of auto, always, never",
        label="In a browser",
        unset="where it adds anything",
        rereads=True,
    ),
    "internal_links": Setting(
        Kind.NUMBER,
        "--internal-links NUMBER",
        "What a link within the domain counts beside those; 1 unless said. 0: no link passes importance on.",
        most=1000,
        label="Internal links",
        words="count {} each",
        unset="count 1 each",
        of_importance=True,
    ),
    "reserve_share": Setting(
        Kind.NUMBER,
        "--reserve-share SHARE",
        "Of a visit's cash, that goes to the reserve and on to all pages, not along links; 0.15 unless said.",
        most=1,
        label="Reserve share",
        words="{} of each visit's cash",
        unset="0.15 of each visit's cash",
        of_importance=True,
    ),
    "window_passes": Setting(
        Kind.FACTOR,
        "--window PASSES",
        "How far back importance looks, in passes of the domain's clock; 24 unless said.",
        label="Window",
        words="{} passes",
        unset="24 passes",
        of_importance=True,
    ),
    "keep_versions": Setting(
        Kind.COUNT,
        "--keep-versions N",
        "Keep the newest N versions of each page, however old; 50 unless said. Of older ones recrawl prune thins "
        "out texts and bodies.",
        least=1,
        label="Versions kept",
        words="the newest {}",
        of_crawl=False,
    ),
    "keep_daily": _kept_for(
        "--keep-daily SPAN", "Of versions before those the last of each day, for so long; 90d unless said.", "One a day"
    ),
    "keep_weekly": _kept_for(
        "--keep-weekly SPAN", "And the last of each week, for so long; 730d unless said.", "One a week"
    ),
    "keep_monthly": _kept_for(
        "--keep-monthly SPAN", "And the last of each month, for so long; for ever unless said.", "One a month"
    ),
    "keep_visits": _kept_for(
        "--keep-visits SPAN",
        "How long each look is remembered; 730d unless said. What was learnt from it stays.",
        "Looks kept",
    ),
    "keep_changes": _kept_for(
        "--keep-changes SPAN", "How long the change feed goes back; 730d unless said.", "Changes kept"
    ),
    "quota": Setting(
        Kind.BYTES,
        "--quota SIZE",
        "Texts and bodies of the domain may take so much: 2GB. Beyond it the oldest versions go first, never a "
        "page's newest: every hour, and after recrawl crawl.",
        label="Quota",
        of_crawl=False,
    ),
}
DEFAULTS = {each.name: each.default for each in fields(DomainSettings)}


def _completed(name: str, setting: Setting) -> Setting:
    """Return a setting of the table with its name, its default, and its names elsewhere."""
    in_seconds = setting.kind in {Kind.DELAY, Kind.SPAN}
    is_of_ordering = name not in DEFAULTS  # whose defaults are its own
    of_importance = setting.of_importance or is_of_ordering
    return replace(
        setting,
        name=name,
        default=DEFAULTS.get(name),
        column=setting.column or name + ("_s" if in_seconds else ""),
        key=setting.key or name + ("_seconds" if in_seconds else ""),
        is_of_ordering=is_of_ordering,
        of_importance=of_importance,
        of_crawl=setting.of_crawl and not of_importance,
    )


SETTINGS = tuple(_completed(name, setting) for name, setting in TABLE.items())
BY_NAME = {setting.name: setting for setting in SETTINGS}


def refusals_in(setting: Setting, value: Any) -> tuple[str, ...]:
    """Why the texts of a setting cannot be used; none where it says nothing of that."""
    texts = () if setting.refuses is None or not value else (value,) if isinstance(value, str) else value
    return tuple(filter(None, map(setting.refuses, texts))) if setting.refuses else ()


def value_of(domain_settings: DomainSettings, setting: Setting) -> Any:
    """The value that a setting has."""
    return getattr(domain_settings.ordering if setting.is_of_ordering else domain_settings, setting.name)


def reads_alike(one: DomainSettings, other: DomainSettings) -> bool:
    """Whether a page that was read under the one says under the other what it said then."""
    return all(value_of(one, each) == value_of(other, each) for each in SETTINGS if each.rereads)


def weighs_alike(one: DomainSettings, other: DomainSettings) -> bool:
    """Whether nothing by which pages are weighed and due is another: neither rules nor what the table marks so."""
    return one.rules == other.rules and all(
        value_of(one, each) == value_of(other, each) for each in SETTINGS if each.reprices
    )


def with_values(domain_settings: DomainSettings, values: Mapping[str, Any]) -> DomainSettings:
    """The settings with these values, by name, in place of what was there. ValueError for what cannot be."""
    within = {name: value for name, value in values.items() if name in BY_NAME and BY_NAME[name].is_of_ordering}
    own = {name: value for name, value in values.items() if name not in within}
    before = domain_settings.ordering
    if "order" in within:
        within["order"] = type(before.order)(within["order"])
    return replace(domain_settings, **own, ordering=replace(before, **within) if within else before)
