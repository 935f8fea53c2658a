"""The living site on a real HTTP server, in this process (LivingServer) or in another one (living_process)."""

from crawler.demo.server.faults import Faults, Outage
from crawler.demo.server.journal import Counts, Entry, Journal
from crawler.demo.server.living import LivingServer
from crawler.demo.server.remote import Remote, living_process

__all__ = ["Counts", "Entry", "Faults", "Journal", "LivingServer", "Outage", "Remote", "living_process"]
