"""The version of modelwire, written here and nowhere else.

The build reads it from this file; `modelwire.__version__` and the names that a client and a server give of
themselves come from it. Never anything but the version.
"""

from __future__ import annotations

__version__ = "0.1.0"
