"""Every command of `python -m labs` is listed and has an example."""

from tests.commands import Recrawl

COMMANDS = (
    *("opic", "windows", "discovery", "nutch", "run", "mechanisms", "replay-domain", "dai", "estimator", "kinds"),
    *("signals", "demo", "replay", "history"),
)


def test_every_command_is_listed_and_shows_an_example(labs: Recrawl) -> None:
    listed = labs("--help").out

    assert [name for name in COMMANDS if f" {name} " not in listed] == []
    assert [name for name in COMMANDS if f"python -m labs {name}" not in labs(name, "--help").out] == []
