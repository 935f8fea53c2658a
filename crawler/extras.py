"""The optional dependencies of recrawl: which are installed, and how to install another one into this environment."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from crawler.errors import CrawlerError

# The modules that each extra of pyproject.toml brings.
EXTRAS: dict[str, tuple[str, ...]] = {
    "browser": ("playwright", "PIL"),
    "mcp": ("mcp",),
    "parquet": ("pyarrow",),
}
LOCKED_EXTRAS = ("mcp", "parquet")  # each has a lock file; `make setup` installs the others
PROJECT = Path(__file__).resolve().parents[1]


class MissingExtra(CrawlerError):
    """An extra is needed that is not installed."""


def require_extra(extra: str, purpose: str) -> None:
    """Raise MissingExtra unless an extra is installed. purpose: what needs it, the subject of a sentence."""
    if problem := explain_missing_extra(extra, purpose):
        raise MissingExtra(problem)


def explain_missing_extra(extra: str, purpose: str) -> str:
    """Return why something cannot be used without an extra and how to install it; empty if it is installed."""
    if is_installed(extra):
        return ""
    return f"{purpose} needs the extra {extra}, which is not installed: run `{build_install_command(extra)}`"


def is_installed(extra: str) -> bool:
    """Return whether all modules of an extra can be imported. Imports none of them."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def build_install_command(extra: str, *, prefix: Path = Path(sys.prefix), python: str = sys.executable) -> str:
    """Return the shell command that adds an extra to an environment, with the tool that made the environment.

    recrawl is in no package index, so the command names the packages of the extra, or where recrawl was installed from.
    prefix: the root folder of the environment.  python: its interpreter.
    """
    if extra in LOCKED_EXTRAS and prefix == PROJECT / ".venv":
        return f"make -C {shlex.quote(str(PROJECT))} setup-extras EXTRAS={extra}"
    installer, source, requirements = _read_metadata(extra)
    if (receipt := prefix / "uv-receipt.toml").is_file():
        import tomllib  # noqa: PLC0415  see _read_metadata

        tool = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]
        if len(tool["requirements"]) == 1:  # else another `uv tool install` would remove plugins
            extras = ",".join(name for name in EXTRAS if name == extra or is_installed(name))
            return shlex.join(["uv", "tool", "install", f"recrawl[{extras}] @ {source}"])
    if (prefix / "pipx_metadata.json").is_file():
        return shlex.join(["pipx", "inject", prefix.name, *requirements])
    if find_spec("pip") is not None:
        return shlex.join([python, "-m", "pip", "install", *requirements])
    if installer == "pip":  # pip installed recrawl and was then removed: only the container image does that
        option = "CHROMIUM=yes" if extra == "browser" else f"EXTRAS={extra}"
        return f"docker build -f deployments/container/Containerfile --build-arg {option} -t recrawl ."
    return shlex.join(["uv", "pip", "install", "--python", python, *requirements])


def _read_metadata(extra: str) -> tuple[str, str, list[str]]:
    """Return the tool that installed recrawl, the URL that it was installed from, and the requirements of an extra."""
    import json  # noqa: PLC0415  few need it, and a crawl starts sooner without
    from importlib.metadata import distribution  # noqa: PLC0415  likewise

    ours = distribution("recrawl")
    lines = [line.partition(";") for line in ours.requires or ()]
    requirements = [line.strip() for line, _, marker in lines if marker.strip() == f"extra == '{extra}'"]
    source = json.loads(ours.read_text("direct_url.json") or "{}").get("url", "")
    return (ours.read_text("INSTALLER") or "").strip(), source, requirements
