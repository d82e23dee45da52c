"""Sections ``input``, ``output`` and ``upstreams.<name>.output``: what is looked for in requests and in answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged
from tidegate.policy.abnormal import LONGEST_PERIOD, InputConfig
from tidegate.policy.output.output_config import OutputConfig, OutputOverride

Input = Annotated[
    InputConfig,
    Ranged(
        repetitive_bytes=(Field(ge=2 * LONGEST_PERIOD), *SIZE_TEXT),
        scan_bytes=(Field(ge=0), *SIZE_TEXT),
    ),
]

Output = Annotated[
    OutputConfig,
    Ranged(
        loop_characters=Field(ge=64, le=65536),
        loop_repeats=Field(ge=3, le=1000),
        garbled_share=Field(gt=0, le=1),
    ),
]

ModelOutput = Annotated[OutputOverride, Ranged()]
