"""Sections ``output`` and ``upstreams.<name>.output``: how answers are looked into, and what is done about them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Ranged
from tidegate.policy.output.output_config import OutputConfig, OutputOverride

Output = Annotated[
    OutputConfig,
    Ranged(
        loop_characters=Field(ge=64, le=65536),
        loop_repeats=Field(ge=3, le=1000),
        garbled_share=Field(gt=0, le=1),
    ),
]

ModelOutput = Annotated[OutputOverride, Ranged()]
