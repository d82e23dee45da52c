"""Which build runs: the pure Python one, or the one whose hot rooms are compiled (docs/performance.md)."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec

COMPILED = "compiled"
PURE = "pure Python"
SIGNS = ("tidegate.policy.path", "tidegate.gateway.exchange")
"""Compiled together with all others or not at all; these run for every request."""


def build(modules: tuple[str, ...] = SIGNS) -> str:
    """``COMPILED`` when the interpreter takes every one of ``modules`` from native code, else ``PURE``.

    Asks where they would be loaded from, and loads none.
    """
    specs = [find_spec(name) for name in modules]
    is_native = all(spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES)) for spec in specs)
    return COMPILED if is_native else PURE
