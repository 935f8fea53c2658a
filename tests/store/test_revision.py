"""The newest migration, as it is told without reading any."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from crawler.store.database import MIGRATIONS, newest_revision


def test_the_newest_migration_has_the_greatest_number() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert newest_revision() == ScriptDirectory.from_config(config).get_current_head()
