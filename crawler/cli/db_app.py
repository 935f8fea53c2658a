"""recrawl db: its options and its help."""

import typer

from crawler.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Look after the database.")


@app.command()
def upgrade(as_json: Json = False) -> int:
    """Bring the database to the newest schema; does nothing where it has it.

    Examples:

        recrawl db upgrade
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/crawl recrawl db upgrade
    """
    from crawler.cli import database

    return database.upgrade(as_json=as_json)


@app.command()
def check(as_json: Json = False) -> int:
    """Check what must always hold: coins, states, versions, changes. Exit code 1 where something does not.

    Examples:

        recrawl db check
        recrawl db check --json
    """
    from crawler.cli import database

    return database.check(as_json=as_json)
