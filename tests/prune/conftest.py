from tests.store.conftest import db, domain

__all__ = ["db", "domain"]
