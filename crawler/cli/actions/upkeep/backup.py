"""recrawl db dump and recrawl db restore."""

import asyncio
from pathlib import Path

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say
from crawler.format.values import format_bytes, format_count
from crawler.runtime.postgres.backup import dump as dump_database
from crawler.runtime.postgres.backup import restored
from crawler.runtime.stack import crawl_database, require_database
from crawler.settings import settings
from crawler.store import domains, report
from crawler.store.database import open_database


def dump(file: Path, *, as_json: bool) -> int:
    require_database(settings())
    with crawl_database(settings()) as url:
        size = dump_database(url, file)
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        say(f"{file}: {format_bytes(size)}")
    return DONE


def restore(file: Path, *, as_json: bool) -> int:
    with restored(settings(), file) as url:
        many = asyncio.run(_freed(url))
    if as_json:
        print_json({"file": str(file), "domains": many})
    else:
        say(f"{format_count(many, 'domain')} restored, as of the dump")
        remark("What was crawled meanwhile is looked at as it falls due. Let no other recrawl crawl the same domains")
    return DONE


async def _freed(url: str) -> int:
    """How many domains there are. Whoever held them when the dump was made holds them in that database alone."""
    async with open_database(url, connections=1) as db:
        await domains.expire_leases(db, holder_prefix="")
        return await report.count_domains(db)
