"""The baseline: the schema as the models define it.

Until the first release, a change of the schema changes models/ only. At the release, the statements are frozen into
this file, and each later change becomes a new migration.
"""

from alembic import op

from models.schema import list_statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    config = op.get_context().config
    assert config is not None
    for statement in list_statements(partitions=config.attributes["partitions"]):
        # Run by the driver, because SQLAlchemy would look for parameters in the text.
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
