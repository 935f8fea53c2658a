"""The newest migration, as it is told without reading any."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from crawler.store.database import MIGRATIONS, revisions


def test_the_newest_migration_has_the_greatest_number() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert revisions()[-1] == ScriptDirectory.from_config(config).get_current_head()
