"""One frozen Settings, built once at the entrance; every default with its unit and its reason."""

import os
from datetime import timedelta
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from crawler import __version__
from crawler.core.budget.ledger import SharedBudget
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.terms import CrawlDefaults
from crawler.errors import BadInput
from crawler.secret_files import add_password, read_variable
from crawler.times import parse_span


def _parse_span(value: object) -> object:
    return parse_span(value) if isinstance(value, str) else value


def _split_names(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


# Each may stand in a file instead, which the variable's name with _FILE behind it names.
SECRETS = {
    "database_url": "RECRAWL_DATABASE_URL",
    "database_password": "RECRAWL_DATABASE_PASSWORD",
    "prefect_database_url": "RECRAWL_PREFECT_DATABASE_URL",
    "PREFECT_API_AUTH_STRING": "PREFECT_API_AUTH_STRING",
}

Network = Annotated[str, AfterValidator(lambda given: str(ip_network(given)))]
Span = Annotated[timedelta, BeforeValidator(_parse_span)]
Seconds = Annotated[Span, Field(gt=timedelta(0))]


def find_default_home() -> Path:
    """The nearest .recrawl of this folder or of one above; where there is none, one place for each user (XDG)."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".recrawl").is_dir():
            return folder / ".recrawl"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "recrawl"


class Settings(BaseSettings):
    """What is the same for every domain. Each field is read from RECRAWL_<NAME>; domains override what is theirs."""

    model_config = SettingsConfigDict(env_prefix="RECRAWL_", frozen=True, extra="ignore")

    # Where things live.
    home: Path = Field(
        default_factory=find_default_home,
        description="folder of the local stack: databases, logs, run files; unset: the .recrawl of this folder or of "
        "the nearest one above, else ~/.local/share/recrawl",
    )
    database_url: SecretStr | None = Field(default=None, description="a Postgres to use instead of the embedded one")
    database_password: SecretStr | None = Field(
        default=None, description="of the user in the two database URLs, where they name none themselves"
    )
    prefect_database_url: SecretStr | None = Field(
        default=None, description="a database of Prefect's alone, for `recrawl server`"
    )
    prefect_api_url: str | None = Field(
        default=None, validation_alias="PREFECT_API_URL", description="a Prefect server to use instead of a local one"
    )
    prefect_api_auth_string: SecretStr | None = Field(
        default=None,
        validation_alias="PREFECT_API_AUTH_STRING",
        description="what that server asks for, user:password; a local one has its own",
    )
    prefect_port: int | None = Field(
        default=None, ge=1, le=65535, description="port of the local Prefect server; unset: 4200, or a free one"
    )

    # What others see of it.
    web_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_names)] = Field(
        default=(),
        description="origins by which browsers reach `recrawl serve` beside where it listens, with commas between "
        "them, such as https://recrawl.example.com behind a proxy",
    )
    metrics_port: int | None = Field(
        default=None, ge=1, le=65535, description="port of the metrics for Prometheus; unset: there are none"
    )
    metrics_host: str = Field(default="127.0.0.1", description="address on which metrics are served")
    log_format: Literal["text", "json"] = Field(
        default="text", description="what is told on stderr: lines for people, or JSON lines for programs"
    )

    # Who we say we are.
    user_agent: str = Field(
        default="recrawl", pattern=r"^[A-Za-z_-]+$", description="product token that robots.txt names"
    )
    contact: str = Field(default="", description="URL or address in the User-Agent for whoever runs the site")

    # What installed packages add.
    plugins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_names)] = Field(
        default=(),
        description="names of the plugins that are used, with commas between them (docs/extending.md); an installed "
        "package alone changes nothing",
    )

    # Leases.
    lease_term: Seconds = Field(
        default=timedelta(seconds=60),
        description="how long a lease lasts without renewal; a killed worker's domain waits this long, "
        "and no request may take longer",
    )
    concurrent_domains: int = Field(default=8, ge=1, description="domains that one shift walks at the same time")
    max_batch_size: int = Field(default=100, ge=1, le=5000, description="visits recorded in one transaction, at most")
    max_batch_age: Seconds = Field(
        default=timedelta(seconds=5), description="a batch is recorded when it is this old, however small"
    )
    max_run_time: Seconds = Field(
        default=timedelta(minutes=10), description="a scheduled shift ends after this long, and the next one goes on"
    )

    run_retention: Span = Field(
        default=timedelta(days=14),
        ge=timedelta(hours=2),  # Prefect takes no less than one
        description="for how long the stack's own Prefect server keeps runs that have ended, with their logs; a server "
        "elsewhere has its own setting, PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD",
    )

    # One request.
    request_timeout: Seconds = Field(
        default=timedelta(seconds=20), description="a request's whole time, from connecting to the last byte"
    )
    max_body_bytes: int = Field(
        default=10_000_000, ge=1024, description="larger bodies, on the wire or expanded, are cut off and recorded so"
    )
    crawl_processes: int | None = Field(
        default=None,
        ge=1,
        description="processes that crawl several domains when one has its core to capacity; unset: as many as cores",
    )
    parser_processes: int | None = Field(
        default=None, ge=0, description="processes that read pages; 0: the crawl's own; unset: as many as cores, 2 to 9"
    )
    exempt_addresses: tuple[Network, ...] = Field(
        default=("127.0.0.0/8", "::1/128"),
        description="networks where one address serves many independent sites, so that no address slot is taken",
    )

    # A browser, for pages that their scripts write.
    browser: str | None = Field(
        default=None,
        description="path or name of the browser; unset: Playwright's own, chromium-headless-shell, chromium or "
        "google-chrome, whichever is found first",
    )
    render_timeout: Seconds = Field(
        default=timedelta(seconds=20), description="a page's whole time in the browser; a page that takes longer hangs"
    )

    # Politeness where neither the domain's settings nor robots.txt say otherwise.
    delay: Span = Field(
        default=timedelta(seconds=1),
        ge=timedelta(0),
        description="from the end of an answer to the next request; nothing for domains added with --allow-private",
    )
    parallelism: int = Field(default=1, ge=1, le=256, description="requests to one domain at a time")
    private_parallelism: int = Field(
        default=8, ge=1, le=256, description="the same, for domains added with --allow-private: one's own servers"
    )
    max_backoff: Seconds = Field(
        default=timedelta(days=1), description="no back-off of ours is longer; Retry-After may be"
    )
    max_retry_after: Seconds = Field(
        default=timedelta(days=30), description="a longer Retry-After is a mistake or a joke, and is cut to this"
    )

    # Size of a domain.
    max_pages: int = Field(default=1_000_000, ge=1, description="pages of one domain; further links pay the reserve")
    max_depth: int = Field(
        default=25, ge=0, description="links from a seed; above the web's diameter of about 17, below any calendar"
    )

    probe_sitemaps: bool = Field(
        default=True,
        description="/sitemap.xml and /sitemap_index.xml are asked for where robots.txt names no sitemap: once, and "
        "rarely again",
    )

    # Time.
    budget_per_day: int | None = Field(
        default=None, ge=0, description="requests of all domains together in a UTC day; unset: no limit"
    )
    bytes_per_day: int | None = Field(
        default=None, ge=0, description="bytes received by all domains together in a UTC day; unset: no limit"
    )
    pace: bool = Field(
        default=True, description="budgets are spread over the day; recrawl crawl spends them as fast as it can anyway"
    )
    min_value: float = Field(default=0.25, gt=0, description="importance x days that a request must be worth")
    min_interval: Seconds = Field(default=timedelta(minutes=10), description="no page is due sooner again")
    max_interval: Seconds = Field(default=timedelta(days=180), description="no page waits longer: nothing is abandoned")
    min_discovery_share: float = Field(
        default=0.3, ge=0, le=1, description="of the requests, guaranteed to first fetches while there are any"
    )
    min_revisit_share: float = Field(
        default=0.3, ge=0, le=1, description="of the requests, guaranteed to looking again while something is due"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_secret_files(cls, raw_values: Any) -> Any:
        """The values with those that stand in files, and the database URLs with their password."""
        from_files = {
            name: secret for name, env in SECRETS.items() if name not in raw_values and (secret := read_variable(env))
        }
        values = raw_values | from_files
        password = values.get("database_password")
        for name in ("database_url", "prefect_database_url") if isinstance(password, str) else ():
            if isinstance(values.get(name), str):
                values[name] = add_password(values[name], password)
        return values

    @property
    def user_agent_header(self) -> str:
        """The User-Agent header: product, version, and how to reach whoever runs it."""
        product = f"{self.user_agent}/{__version__}"
        return f"{product} (+{self.contact})" if self.contact else product

    @property
    def defaults(self) -> CrawlDefaults:
        """What holds for pages where neither plan nor rules say otherwise."""
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
        """What all domains together may spend on a day."""
        return SharedBudget(self.budget_per_day, self.bytes_per_day)

    def uses_whole_budget(self, domain_settings: DomainSettings) -> bool:
        """Whether scheduled crawls make each request of the domain's budget."""
        return domain_settings.uses_whole_budget and self.defaults.fills_budgets

    def choose_delay(self, domain_settings: DomainSettings, *, is_own: bool) -> timedelta:
        """The domain's delay before robots.txt had its say: one's own servers need none."""
        if domain_settings.delay is not None:
            return domain_settings.delay
        return timedelta(0) if is_own else self.delay

    def choose_parallelism(self, domain_settings: DomainSettings, *, is_own: bool) -> int:
        """How many pages of the domain are looked at at a time."""
        return domain_settings.parallelism or (self.private_parallelism if is_own else self.parallelism)


EXAMPLE_LIST = '["127.0.0.0/8"]'


@cache
def get_settings() -> Settings:
    """The process's settings, read from the environment the first time."""
    try:
        return Settings()
    except SettingsError as error:  # the only settings that are more than a word are lists
        raise BadInput(f"RECRAWL_EXEMPT_ADDRESSES is no JSON list such as {EXAMPLE_LIST}") from error
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])  # what follows is a place in its list
        name = name if name.startswith("PREFECT") else f"RECRAWL_{name.upper()}"
        if "error" in first.get("ctx", {}):  # a sentence of ours, which names what was given
            raise BadInput(f"{name}: {first['ctx']['error']}") from error
        raise BadInput(f"{name}: {first['msg']} (it is {first['input']!r})") from error
