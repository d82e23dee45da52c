"""What the embedded engine is started with."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass, field

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.launch import Launch
from tidegate.engines.llamacpp.model_file import DEMO_ALIAS
from tidegate.engines.loopback import free_port
from tidegate.policy.reading import Capacity

MODULE = "tidegate.engines.llamacpp.embedded"
QUIET_THREADS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
"""libgomp's threads spin between two steps. On a machine with other work that was measured to make
decoding 20 to 80 times slower; asleep they cost 6 % on an idle one. Read when the library is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Chosen once: a restarted engine has the same ``port`` and ``api_key`` and is found where it was."""

    model: str
    """Path of the GGUF file (``model_file``)."""
    port: int = field(default_factory=free_port)
    alias: str = DEMO_ALIAS
    sequences: int = 4
    context_tokens: int = 2048
    """Of one sequence."""
    threads: int = field(default_factory=lambda: max(1, (os.cpu_count() or 1) - 1))
    """One core stays for the gateway."""
    prefix_caching: bool = True
    host_cache_mib: int = 256
    """Host memory for prompts that lost their slot; llama.cpp's own default is 8 GiB."""
    api_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Without one llama.cpp serves any web page that the machine's user opens."""

    @property
    def address(self) -> Address:
        """Where it will be asked."""
        return Address(url=f"http://127.0.0.1:{self.port}", api_key=self.api_key)

    @property
    def capacity(self) -> Capacity:
        """What it will hold, known before it runs: a slot is one sequence's part of the KV."""
        return Capacity(
            kv_tokens=self.sequences * self.context_tokens,
            slot_tokens=self.context_tokens,
            sequences=self.sequences,
            context_tokens=self.context_tokens,
        )

    def launch(self, name: str) -> Launch:
        """The child process under this name."""
        return Launch(
            name=name,
            command=(sys.executable, "-m", MODULE),
            env=QUIET_THREADS,
            first_line=msgspec.json.encode(self) + b"\n",
        )
