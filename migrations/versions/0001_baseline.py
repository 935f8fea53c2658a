"""The schema as the models define it.

Until the first release, whoever changes the schema changes models/ and nothing here. With the release, the statements
are frozen into this file, and every later change is a migration of its own.
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
        # By the driver itself: SQLAlchemy would look for parameters.
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise NotImplementedError("migrations go forward; restore a backup instead")
