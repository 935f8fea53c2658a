"""What recrawl can do, each verb once, for the command, the web UI, the API and the flows.

Functions here take and return values. They never print and never read a command line.
"""

from crawler.app.status import Wait, WaitReason, waiting_domains, why_not_now
