"""Section ``lens``: what is kept of finished requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Section


class Lens(Section):
    """Records and readings, for ``tidegate explain request`` and the metrics."""

    enabled: bool = True
    """Off: metrics only, no records."""
    ring_records: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """How many recent records the parent keeps."""
