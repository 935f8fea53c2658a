"""`python -m crawler` is the same as `recrawl`."""

import sys

from crawler.cli import main

sys.exit(main())
