"""One YAML (or none), environment and flags to ``Settings``.

Reading order: settings (the sections), load (the layers), validate and checks (what can be wrong),
assemble (settings to what the policies take), reload.
"""

from __future__ import annotations

from tidegate.config.load import load
from tidegate.config.settings import Settings

__all__ = ["Settings", "load"]
