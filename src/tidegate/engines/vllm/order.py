"""What the process that runs a vLLM server is told."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from tidegate.engines.launch import Launch

MODULE = "tidegate.engines.vllm.keeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Travels on standard input: the environment holds the engine's key."""

    command: tuple[str, ...]
    """The server, with all its flags (``VllmCommand.arguments``)."""
    env: Mapping[str, str] = field(repr=False)
    """Added to our own environment."""
    url: str
    """Where it will listen."""

    def launch(self, name: str) -> Launch:
        """The child process under this name."""
        return Launch(name=name, command=(sys.executable, "-m", MODULE), first_line=msgspec.json.encode(self) + b"\n")
