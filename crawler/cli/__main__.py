"""Entry point of `python -m crawler.cli`, which is the same as `recrawl`."""

import sys

from crawler.cli import main

sys.exit(main())
