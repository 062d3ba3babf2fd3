"""``python -m modelwire``: the command line, where its script is not on PATH. Does nothing when imported."""

from __future__ import annotations

import sys

from modelwire.cli import main

if __name__ == "__main__":
    sys.exit(main())
