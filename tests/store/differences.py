from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from migrations.filter import ours
from models import metadata


def schema_differences(url: str) -> list[Any]:
    """Return the differences between the models and the schema of a database."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"include_object": ours, "compare_type": True, "target_metadata": metadata}
            )
            return list(compare_metadata(context, metadata))
    finally:
        engine.dispose()
