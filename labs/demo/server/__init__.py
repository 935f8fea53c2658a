"""An HTTP server for the living site, with faults on demand and a clock that tests can set.

`python -m labs.demo.server` serves it; `remote` runs it in a separate process. Uses core and the site.
"""

from labs.demo.server.living import LivingServer
from labs.demo.server.remote import Remote, living_process

__all__ = ["LivingServer", "Remote", "living_process"]
