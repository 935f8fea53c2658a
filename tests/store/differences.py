from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from migrations.filter import ours
from models import metadata


def schema_differences(url: str) -> list[Any]:
    """What the models say and the database does not, or the other way round; empty where they agree."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"include_object": ours, "compare_type": True, "target_metadata": metadata}
            )
            return list(compare_metadata(context, metadata))
    finally:
        engine.dispose()
