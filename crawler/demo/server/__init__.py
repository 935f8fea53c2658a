"""An HTTP server for the living site, with its faults, on a clock that can be moved.

`python -m crawler.demo.server` serves it; `remote` runs it in a process of its own. Uses core and the site.
"""

from crawler.demo.server.living import LivingServer
from crawler.demo.server.remote import Remote, living_process

__all__ = ["LivingServer", "Remote", "living_process"]
