from crawler.core.domain import Domain
from crawler.core.page.fingerprint import compute_digest
from crawler.store.database import Database
from crawler.store.record import content

SHORT, LONG, LATER = b"<p>Short", b"<p>A long one. " * 200, b"<p>Another one. " * 200


async def put(db: Database, domain: Domain, *bodies: bytes) -> None:
    async with db.transaction() as connection:
        await content.store_bodies(connection, domain.id, {compute_digest(body): body for body in bodies})


async def test_a_body_is_stored_once_across_batches(db: Database, domain: Domain) -> None:
    await put(db, domain, SHORT, LONG)
    await put(db, domain, LONG, LATER)
    await put(db, domain, SHORT, LATER)  # nothing new
    await put(db, domain)

    async with db.transaction() as connection:
        rows = await (
            await connection.execute("SELECT encoding, body_bytes FROM content ORDER BY body_bytes")
        ).fetchall()
        kept = [await content.read_body(connection, domain.id, compute_digest(body)) for body in (SHORT, LONG, LATER)]
    assert rows == [("identity", len(SHORT)), ("zstd", len(LONG)), ("zstd", len(LATER))]
    assert kept == [SHORT, LONG, LATER]
