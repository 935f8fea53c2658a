"""The settings of the process, read once from environment variables."""

import json
import os
from datetime import timedelta
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from crawler import __version__
from crawler.core.budget.ledger import SharedBudget
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.visit_terms import CrawlDefaults
from crawler.errors import BadInput
from crawler.roles import Role
from crawler.secret_files import add_password, read_variable
from crawler.times import parse_span


def _parse_span(value: object) -> object:
    return parse_span(value) if isinstance(value, str) else value


def _split_names(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _parse_pairs(value: object) -> object:
    """Parse name=role pairs, separated by commas."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in filter(None, map(str.strip, value.split(",")))]
    if unknown := [role.strip() for _, _, role in pairs if role.strip() not in set(Role)]:
        raise ValueError(f"{unknown[0]!r} is not a role: use GROUP=ROLE with one of {', '.join(Role)}")
    return tuple((name.strip(), Role(role.strip())) for name, _, role in pairs)


def _parse_json_list(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError('not a JSON list such as ["127.0.0.0/8"]') from error


# The variables of secret settings. Each can be read from a file instead, which the variable <VARIABLE>_FILE names.
SECRETS = {
    "database_url": "RECRAWL_DATABASE_URL",
    "database_password": "RECRAWL_DATABASE_PASSWORD",
    "prefect_database_url": "RECRAWL_PREFECT_DATABASE_URL",
    "PREFECT_API_AUTH_STRING": "PREFECT_API_AUTH_STRING",
}

PREFECT_VARIABLES = frozenset({"PREFECT_API_URL", "PREFECT_API_AUTH_STRING"})  # of Prefect's own settings

Network = Annotated[str, AfterValidator(lambda given: str(ip_network(given)))]
Span = Annotated[timedelta, BeforeValidator(_parse_span)]
Seconds = Annotated[Span, Field(gt=timedelta(0))]


def name_variable(setting: str) -> str:
    """Return the environment variable of a setting."""
    return setting.upper() if setting.upper() in PREFECT_VARIABLES else f"RECRAWL_{setting.upper()}"


def find_default_home() -> Path:
    """Return the nearest .recrawl folder here or above; if there is none, the user's data folder (XDG)."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".recrawl").is_dir():
            return folder / ".recrawl"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "recrawl"


class Settings(BaseModel):
    """Settings for all domains, read from RECRAWL_<NAME> or PREFECT_<NAME>. A domain's own settings override them.

    Budgets are an exception: a domain's own budget applies in addition to the one that all domains share.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    # Where data is stored.
    home: Path = Field(
        default_factory=find_default_home,
        description="folder of the local stack: databases, logs, run files; if not set: .recrawl in this folder or in "
        "the nearest parent folder, else ~/.local/share/recrawl",
    )
    database_url: SecretStr | None = Field(
        None, description="URL of a Postgres database to use instead of the embedded one"
    )
    database_password: SecretStr | None = Field(
        None, description="password for the two database URLs, if they contain none"
    )
    postgres_idle_time: Span = Field(
        timedelta(minutes=5),
        ge=timedelta(0),
        description="time for which the embedded Postgres keeps running after the last command that used it, so that "
        "the next command need not start it; 0: it stops with the last command",
    )
    prefect_database_url: SecretStr | None = Field(
        None, description="URL of a separate database for Prefect, used by `recrawl server`"
    )
    prefect_api_url: str | None = Field(
        None, validation_alias="PREFECT_API_URL", description="URL of a Prefect server to use instead of the local one"
    )
    prefect_api_auth_string: SecretStr | None = Field(
        None,
        validation_alias="PREFECT_API_AUTH_STRING",
        description="login of the server at PREFECT_API_URL, as user:password; the local server creates its own",
    )
    prefect_port: int | None = Field(
        None, ge=1, le=65535, description="port of the local Prefect server; if not set: 4200 or a free port"
    )

    # Web UI, metrics and logs.
    web_origins: Annotated[tuple[str, ...], BeforeValidator(_split_names)] = Field(
        (),
        description="additional origins by which browsers reach `recrawl serve`, separated by commas, such as "
        "https://recrawl.example.com behind a proxy",
    )
    trust_header: str = Field(
        "",
        pattern=r"^[A-Za-z0-9-]*$",
        description="name of the request header in which a proxy with its own login, such as oauth2-proxy, names the "
        "user; if not set, no header is trusted (docs/users.md)",
    )
    trust_groups_header: str = Field(
        "",
        pattern=r"^[A-Za-z0-9-]*$",
        description="name of the header with the user's groups, separated by commas; if not set, the role of the user "
        "is the one that `recrawl users add` gave",
    )
    trust_groups: Annotated[tuple[tuple[str, Role], ...], BeforeValidator(_parse_pairs)] = Field(
        (),
        description="roles of groups, such as crawl-admins=admin,staff=view; other groups give no access",
    )
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_split_names)] = Field(
        (),
        description="addresses or networks of the proxies whose headers are trusted, separated by commas, such as "
        "10.0.0.5,172.18.0.0/16",
    )
    action_retention: Seconds = Field(
        timedelta(days=365), description="time for which `recrawl prune` keeps the log of actions"
    )
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="port for Prometheus metrics; if not set, no metrics are served"
    )
    metrics_host: str = Field("127.0.0.1", description="address on which metrics are served")
    log_format: Literal["text", "json"] = Field(
        "text", description="format of the log on stderr: text for people, JSON lines for programs"
    )

    # How the crawler identifies itself.
    user_agent: str = Field(
        "recrawl",
        pattern=r"^[A-Za-z_-]+$",
        description="product token: the name in the User-Agent header that robots.txt rules match",
    )
    contact: str = Field("", description="URL or email address in the User-Agent header, for operators of the sites")

    # Plugins of installed packages.
    plugins: Annotated[tuple[str, ...], BeforeValidator(_split_names)] = Field(
        (),
        description="names of the plugins to use, separated by commas (docs/extending.md); installing a package "
        "alone changes nothing",
    )

    # Leases.
    lease_term: Seconds = Field(
        timedelta(seconds=60),
        description="time until a lease expires without renewal: after a worker is killed, its domain waits this long; "
        "half of it is also an upper limit of one request's time",
    )
    concurrent_domains: int = Field(8, ge=1, description="number of domains that one crawl run crawls at a time")
    max_batch_size: int = Field(300, ge=1, le=5000, description="maximum number of visits recorded in one transaction")
    max_batch_age: Seconds = Field(
        timedelta(seconds=5), description="age at which a batch of visits is recorded even if it is not full"
    )
    max_run_time: Seconds = Field(
        timedelta(minutes=10), description="time limit of a scheduled crawl run; the next run continues"
    )

    run_retention: Span = Field(
        timedelta(days=14),
        ge=timedelta(hours=2),  # Prefect's own minimum is one hour
        description="time for which the local Prefect server keeps finished runs and their logs; on another Prefect "
        "server, set PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD",
    )

    # One request.
    request_timeout: Seconds = Field(
        timedelta(seconds=20), description="time limit of one request, from connecting to the last byte"
    )
    max_body_bytes: int = Field(
        10_000_000,
        ge=1024,
        description="maximum size of a body, compressed or decompressed; a visit to a page with a larger one fails",
    )
    crawl_processes: int | None = Field(
        None,
        ge=1,
        description="maximum number of processes that crawl domains; others start when the first uses its core fully; "
        "if not set: one per core",
    )
    parser_processes: int | None = Field(
        None,
        ge=0,
        description="number of processes that parse large pages, and small ones while the crawling process is busy; "
        "0: parse in the crawling process; if not set: the number of cores plus one, at most 9",
    )
    exempt_addresses: Annotated[tuple[Network, ...], BeforeValidator(_parse_json_list)] = Field(
        ("127.0.0.0/8", "::1/128"),
        description="JSON list of networks where one address serves many independent sites; elsewhere, domains that "
        "share an address are crawled one at a time",
    )

    # A browser, for pages that are rendered by scripts.
    browser: str | None = Field(
        None,
        description="path or name of the browser; if not set: the first one found of Playwright's browser, "
        "chromium-headless-shell, chromium, chromium-browser and google-chrome",
    )
    render_timeout: Seconds = Field(
        timedelta(seconds=20),
        description="time limit for opening a tab of the browser, and again for loading and reading the page",
    )

    # Politeness, unless the domain's settings or robots.txt say otherwise.
    delay: Span = Field(
        timedelta(seconds=1),
        ge=timedelta(0),
        description="time from the last request, or the end of the last response if that is later, to the next "
        "request; 0 for your own server (a domain with --allow-private, only private addresses)",
    )
    parallelism: int = Field(1, ge=1, le=256, description="simultaneous requests to one domain")
    private_parallelism: int = Field(
        8,
        ge=1,
        le=256,
        description="simultaneous requests to your own server (a domain with --allow-private, only private addresses)",
    )
    max_backoff: Seconds = Field(
        timedelta(days=1), description="maximum back-off after failures, unless Retry-After demands more"
    )
    max_retry_after: Seconds = Field(
        timedelta(days=30), description="maximum Retry-After; longer ones are shortened to this"
    )

    # Size of a domain.
    max_pages: int = Field(
        1_000_000, ge=1, description="maximum number of pages of one domain; further URLs are not added"
    )
    max_depth: int = Field(
        25,
        ge=0,
        description="maximum distance from the nearest seed, in links: more than the web's diameter of about 17, and "
        "few enough to end endless calendars",
    )

    probe_sitemaps: bool = Field(
        default=True,
        description="whether to request /sitemap.xml and /sitemap_index.xml if robots.txt names no sitemap: once, and "
        "rarely again",
    )

    # Budgets and revisits.
    budget_per_day: int | None = Field(
        None, ge=0, description="maximum requests of all domains together per UTC day; if not set: no limit"
    )
    bytes_per_day: int | None = Field(
        None, ge=0, description="maximum bytes received by all domains together per UTC day; if not set: no limit"
    )
    pace: bool = Field(
        default=True,
        description="whether to spread budgets over the day; `recrawl crawl` always spends them as fast as it can",
    )
    min_value: float = Field(
        0.25, gt=0, description="minimum value of a visit, in importance x days, for domains without a budget or target"
    )
    min_interval: Seconds = Field(timedelta(minutes=10), description="minimum time between visits of a page")
    max_interval: Seconds = Field(timedelta(days=180), description="maximum time between visits of a page")
    min_discovery_share: float = Field(
        0.3, ge=0, le=1, description="share of requests guaranteed to unfetched pages while there are any"
    )
    min_revisit_share: float = Field(
        0.3, ge=0, le=1, description="share of requests guaranteed to revisits while any are due"
    )

    @model_validator(mode="after")
    def _check_trust(self) -> "Settings":
        if self.trust_header and not self.trusted_proxies:
            raise ValueError("RECRAWL_TRUST_HEADER needs RECRAWL_TRUSTED_PROXIES: whose headers may be trusted?")
        if bool(self.trust_groups_header) is not bool(self.trust_groups):
            raise ValueError("RECRAWL_TRUST_GROUPS_HEADER and RECRAWL_TRUST_GROUPS need each other")
        return self

    @model_validator(mode="before")
    @classmethod
    def _read_environment(cls, given: Any) -> Any:
        """Return the values with those of variables, secrets from files, and the password in the database URLs."""
        variables = {name.upper(): value for name, value in os.environ.items()}
        names = {name_variable(name): field.validation_alias or name for name, field in cls.model_fields.items()}
        values = {name: variables[variable] for variable, name in names.items() if variable in variables} | given
        from_files = {name: read_variable(env) for name, env in SECRETS.items() if name not in values}
        values |= {name: secret for name, secret in from_files.items() if secret}
        password = values.get("database_password")
        for name in ("database_url", "prefect_database_url") if isinstance(password, str) else ():
            if isinstance(values.get(name), str):
                values[name] = add_password(values[name], password)
        return values

    @field_validator("min_revisit_share")
    @classmethod
    def _check_shares(cls, share: float, info: ValidationInfo) -> float:
        if share + info.data.get("min_discovery_share", 0) > 1:
            raise ValueError("more than 1 together with RECRAWL_MIN_DISCOVERY_SHARE")
        return share

    @property
    def user_agent_header(self) -> str:
        """Return the User-Agent header: product, version and contact."""
        product = f"{self.user_agent}/{__version__}"
        return f"{product} (+{self.contact})" if self.contact else product

    @property
    def defaults(self) -> CrawlDefaults:
        """Return the crawl settings of pages, which the plan and page rules can override."""
        return CrawlDefaults(
            shadow_price=self.min_value,
            min_interval=self.min_interval,
            max_interval=self.max_interval,
            discovery_share=self.min_discovery_share,
            refresh_share=self.min_revisit_share,
            budget_per_day=self.budget_per_day,
            bytes_per_day=self.bytes_per_day,
            fills_budgets=self.pace and not self.shared_budget.is_limited,
        )

    @property
    def shared_budget(self) -> SharedBudget:
        """Return the daily budget of all domains together."""
        return SharedBudget(self.budget_per_day, self.bytes_per_day)

    def uses_whole_budget(self, domain_settings: DomainSettings) -> bool:
        """Return whether scheduled crawl runs spend the domain's whole budget."""
        return domain_settings.uses_whole_budget and self.defaults.fills_budgets

    def choose_delay(self, domain_settings: DomainSettings, *, is_own: bool) -> timedelta:
        """Return the delay of a domain without that of robots.txt. is_own: it is the user's own server."""
        if domain_settings.delay is not None:
            return domain_settings.delay
        return timedelta(0) if is_own else self.delay

    def choose_parallelism(self, domain_settings: DomainSettings, *, is_own: bool) -> int:
        """Return how many pages of a domain are fetched at a time. is_own: it is the user's own server."""
        return domain_settings.parallelism or (self.private_parallelism if is_own else self.parallelism)


@cache
def get_settings() -> Settings:
    """Return the settings of the process, which the first call reads from the environment."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # settings that do not fit each other
            raise BadInput(str(first["ctx"]["error"])) from error
        name = name_variable(str(first["loc"][0]))  # the rest is an index into the setting's list
        if "error" in first.get("ctx", {}):  # our own message, which quotes the input
            raise BadInput(f"{name}: {first['ctx']['error']}") from error
        raise BadInput(f"{name}: {first['msg']} (it is {first['input']!r})") from error
