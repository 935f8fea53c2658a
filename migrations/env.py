"""The Alembic environment. crawler/store/migrate.py passes the connection; no configuration file is read."""

from alembic import context

from migrations.filter import ours
from models import metadata


def run() -> None:
    """Run the migrations over the connection that the caller put into the configuration."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        include_object=ours,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
