"""Named sets of defaults. A preset lies above the built-in defaults and below everything that anybody wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.config.origin import Kind, Origin, Path
from tidegate.config.tree import Tree

PRESETS: Mapping[str, Mapping[Path, Any]] = {
    # S0-34: short texts and now and then a pasted contract, so that class long begins early and is kept small. A queue
    # of 5000 is of use only to those who may wait for its end. Weight and waits are those with which, simulated, nearly
    # nobody goes without an answer in a burst (burst-1000) and contracts cost the questions about a tenth.
    "customer-service": {
        ("shaping", "queue", "max_requests"): 5000,
        ("shaping", "long_threshold_tokens"): 512,
        ("shaping", "gpu_utilization_high_percent"): 75,
        ("classes", "interactive", "max_wait_s"): 30.0,
        ("classes", "long", "max_wait_s"): 20.0,
        ("classes", "long", "weight"): 0.35,
        ("classes", "long", "max_share"): 0.5,
    },
    # S2-05: a small batch answers each of its members sooner. Suits interactive use on mid-size cards.
    "low-latency-batch": {
        ("limits", "adaptive", "minimum"): 8,
        ("limits", "adaptive", "initial"): 16,
        ("limits", "adaptive", "maximum"): 32,
    },
    # S1-45, latency first: what would come late is refused early, and offline work keeps out of the way.
    "interactive": {
        ("classes", "interactive", "ttft_slo_s"): 2.0,
        ("classes", "interactive", "floor"): 0.25,
        ("classes", "batch", "max_share"): 0.25,
    },
    # S1-45, throughput first: everything may wait for long, and offline work takes what there is.
    "offline": {
        ("shaping", "queue", "max_requests"): 20_000,
        ("classes", "interactive", "max_wait_s"): 60.0,
        ("classes", "long", "max_wait_s"): 120.0,
        ("classes", "batch", "max_wait_s"): 600.0,
        ("classes", "batch", "max_share"): 1.0,
    },
}


def lay_preset(tree: Tree) -> None:
    """Put the values of the preset that ``tree`` names wherever nobody wrote one. What is no preset is for the
    validation to say."""
    name = tree.get(("preset",))
    values = PRESETS.get(name, {}) if isinstance(name, str) else {}
    origin = Origin(Kind.PRESET, f"preset {name}")
    for path, value in values.items():
        if path in tree.origins or not isinstance(tree.get(path[:-1]), dict):
            continue
        tree.put(path, value, origin)
