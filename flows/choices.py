"""What the forms of the user interface offer to choose from."""

from prefect.client.orchestration import get_client

from crawler.app.database import Database
from crawler.runtime.prefect.api import offer_domains


async def tell_forms(db: Database) -> None:
    """Let the forms that ask for a domain offer those that are registered now."""
    async with get_client() as client:
        await offer_domains(client, db)
