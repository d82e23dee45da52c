"""One YAML (or none), environment and flags to ``Settings``.

Reading order: settings (the sections), load (the layers), validate and checks (what can be wrong),
assemble (settings to what the policies take), slot_plan and timeout_tree (what is told at start),
reload (what a changed file changes).
"""

from __future__ import annotations

from tidegate.config.assemble import path_config, slot_plans
from tidegate.config.flags import set_flags, upstream_flags
from tidegate.config.load import load
from tidegate.config.reload import Change, diff
from tidegate.config.settings import Settings
from tidegate.config.timeout_tree import timeout_tree

__all__ = [
    "Change",
    "Settings",
    "diff",
    "load",
    "path_config",
    "set_flags",
    "slot_plans",
    "timeout_tree",
    "upstream_flags",
]
