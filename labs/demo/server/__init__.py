"""An HTTP server for the living site, with its faults, on a clock that can be moved.

`python -m labs.demo.server` serves it; `remote` runs it in a process of its own. Uses core and the site.
"""

from labs.demo.server.living import LivingServer
from labs.demo.server.remote import Remote, living_process

__all__ = ["LivingServer", "Remote", "living_process"]
