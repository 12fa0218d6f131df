"""``python -m dbdyno``: the same as ``dbdyno``."""

from __future__ import annotations

import sys

from dbdyno.cli import main

if __name__ == "__main__":
    sys.exit(main())
