"""Leases of killed commands: whoever crawls next on the machine takes them back, and waits for none to run out."""

import os
import socket

from crawler.store import domains, report
from crawler.store.database import Database


async def free_dead_leases(db: Database) -> None:
    """Take back what killed commands on this machine still hold: the embedded Postgres is used from no other."""
    for holder in await report.holders(db):
        machine, _, rest = holder.partition("/")
        pid = rest.partition("/")[0]
        if machine == socket.gethostname() and pid.isdigit() and not _is_alive(int(pid)):
            await domains.expire_leases(db, holder_prefix=f"{machine}/{pid}/")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
