"""The slot arithmetic of one replica (SPEC C1, C2, S0-15): pool, slot size, slots, sequences.

    slot_tokens = slot_size ÷ bytes_per_token          slots = pool_tokens ÷ slot_tokens
    sequences   = min(asked, slots)                     recommended = ⌊0.8 × slots⌋

The pool is what is left of the device for KV, never the whole device: weights, activations and the
engine's own context come first (C2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.config.origin import Path
from tidegate.config.slots import Slots
from tidegate.config.started_engines import Embedded, Engine, Vllm
from tidegate.config.upstreams import Replica
from tidegate.errors import ConfigError
from tidegate.policy.reading import Capacity

MIB = 2**20
RECOMMENDED_SHARE = 0.8
"""Leaves a fifth of the slots for bursts (SPEC S0-15)."""


MOST_SEQUENCES = 256
"""Beside each other where nobody says how many; vLLM's own default on most GPUs."""


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """What one replica holds. None: not known before the engine tells."""

    replica: str
    upstream: str
    path: Path
    """Where the replica stands in the configuration."""
    slot_tokens: int
    pool_tokens: int | None = None
    bytes_per_token: int | None = None
    asked_sequences: int | None = None
    context_tokens: int | None = None
    abort_grace_s: float | None = None
    domain: str = ""
    """What the replica shares with others that can fail at once."""
    warnings: tuple[str, ...] = ()

    @property
    def slots(self) -> int | None:
        return None if self.pool_tokens is None else self.pool_tokens // self.slot_tokens

    @property
    def recommended_sequences(self) -> int | None:
        return None if self.slots is None else int(self.slots * RECOMMENDED_SHARE)

    @property
    def sequences(self) -> int | None:
        """What is really given: never more than there are slots."""
        if self.asked_sequences is None or self.slots is None:
            return self.asked_sequences
        return min(self.asked_sequences, self.slots)

    @property
    def is_overcommitted(self) -> bool:
        return self.asked_sequences is not None and self.slots is not None and self.asked_sequences > self.slots

    def capacity(self) -> Capacity:
        """The plan as the policies take it."""
        return Capacity(
            kv_tokens=self.pool_tokens,
            slot_tokens=self.slot_tokens,
            bytes_per_token=self.bytes_per_token,
            sequences=self.sequences,
            context_tokens=self.context_tokens,
        )

    def told(self, pool_tokens: int | None, sequences: int | None, context_tokens: int | None) -> SlotPlan:
        """The plan once the engine has told its own figures; what the file says goes before them."""
        return replace(
            self,
            pool_tokens=self.pool_tokens if self.pool_tokens is not None else pool_tokens,
            asked_sequences=self.asked_sequences if self.asked_sequences is not None else sequences,
            context_tokens=self.context_tokens if self.context_tokens is not None else context_tokens,
        )

    def overcommit_line(self) -> str:
        """The one WARN line of C1, or the reason of the refusal."""
        return (
            f"{self.asked_sequences} sequences asked of {self.replica}, which has {self.slots} slots: "
            f"at most {self.slots} run beside each other (recommended: {self.recommended_sequences})"
        )


def plan_replica(replica: Replica, name: str, path: Path, slots: Slots) -> SlotPlan:
    """The plan of an engine that runs already, as far as the configuration tells."""
    size_mib = replica.slot_size_mib or slots.slot_size_mib
    per_token = replica.bytes_per_token
    slot_tokens = replica.slot_tokens or Capacity().slot_tokens
    warnings: tuple[str, ...] = ()
    if not replica.slot_tokens and size_mib and per_token:
        slot_tokens = max(1, size_mib * MIB // per_token)
    elif not replica.slot_tokens and size_mib:
        effect = f"slots.slot_size_mib: {size_mib} has no effect on {name}, whose bytes_per_token is not known"
        warnings = (f"{effect}: a slot is {slot_tokens} tokens",)
    pool_tokens = replica.kv_tokens
    if pool_tokens is None and replica.kv_pool_bytes and per_token:
        pool_tokens = replica.kv_pool_bytes // per_token
    return SlotPlan(
        name,
        str(path[1]),
        path,
        slot_tokens,
        pool_tokens,
        per_token,
        asked_sequences=replica.sequences,
        context_tokens=replica.context_tokens,
        abort_grace_s=replica.abort_grace_s,
        domain=replica.domain or "",
        warnings=warnings,
    )


def plan_engine(engine: Engine, name: str, path: Path, slots: Slots) -> SlotPlan:
    """The plan of an engine that Tidegate starts."""
    return _plan_vllm(engine, name, path, slots) if isinstance(engine, Vllm) else _plan_embedded(engine, name, path)


def _plan_embedded(engine: Embedded, name: str, path: Path) -> SlotPlan:
    """llama.cpp gives each sequence a fixed part of its KV, and that is the slot."""
    pool_tokens = engine.sequences * engine.context_tokens
    return SlotPlan(
        name,
        str(path[1]),
        path,
        slot_tokens=engine.context_tokens,
        pool_tokens=pool_tokens,
        bytes_per_token=engine.bytes_per_token,
        asked_sequences=engine.sequences,
        context_tokens=engine.context_tokens,
    )


def _plan_vllm(engine: Vllm, name: str, path: Path, slots: Slots) -> SlotPlan:
    """A slot is whole blocks; the pool is pinned. What a token takes may only be known from the checkpoint."""
    per_token, block_tokens = engine.bytes_per_token, engine.block_tokens or 1
    wanted = Capacity().slot_tokens
    if slots.slot_size_mib and per_token:
        wanted = slots.slot_size_mib * MIB // per_token
    pool_tokens = None
    if engine.kv_blocks and engine.block_tokens:
        pool_tokens = engine.kv_blocks * block_tokens
    elif engine.kv_bytes and per_token:
        pool_tokens = engine.kv_bytes // per_token // block_tokens * block_tokens
    plan = SlotPlan(
        name,
        str(path[1]),
        path,
        slot_tokens=max(1, wanted // block_tokens) * block_tokens,
        pool_tokens=pool_tokens,
        bytes_per_token=per_token,
        asked_sequences=engine.sequences,
        context_tokens=engine.context_tokens,
    )
    if engine.sequences is not None or not plan.recommended_sequences:
        return plan
    return replace(plan, asked_sequences=min(MOST_SEQUENCES, plan.recommended_sequences))


def fitted(plan: SlotPlan, overcommit: str) -> list[str]:
    """WARN lines of a plan. Raises ConfigError for too many sequences under ``overcommit: fail``.

    Called again when a running engine has told its pool.
    """
    if not plan.is_overcommitted:
        return list(plan.warnings)
    if overcommit == "fail":
        raise ConfigError([f"slots.overcommit: fail: {plan.overcommit_line()}"])
    return [*plan.warnings, plan.overcommit_line()]


def allocation_lines(plan: SlotPlan) -> list[str]:
    """The start log's first two lines (SPEC S0-11), with the figures of this replica."""
    if plan.slots is None or plan.pool_tokens is None:
        return [f"Slots of {plan.replica}: unknown until the engine tells its KV pool; the adaptive limit protects it"]
    if plan.bytes_per_token is None:
        size, total = f"{plan.slot_tokens} tokens each", f"{plan.slots * plan.slot_tokens} tokens"
    else:
        slot_bytes = plan.slot_tokens * plan.bytes_per_token
        size, total = f"{_mib(slot_bytes)}MB each", f"{plan.slots * slot_bytes / 2**30:.1f}GB"
    return [
        f"Pre-allocating {plan.slots} memory slots ({size}) → total {total}",
        f"Slot allocation completed. Free slots: {plan.slots}/{plan.slots}",
    ]


def weights_line(resident_bytes: int | None) -> str:
    """After an engine that Tidegate started has loaded its weights; the true figure, not the source's 0.0GB."""
    known = "not reported" if resident_bytes is None else f"{resident_bytes / 2**30:.1f}GB"
    return f"Weights loaded. Memory usage: {known}"


def ready_line(free: int | None, total: int | None) -> str:
    """``free`` below ``total`` at ready means that something holds slots before the first request (SPEC S0-12)."""
    return f"Server ready. Free slots: {'unknown' if free is None or total is None else f'{free}/{total}'}"


def _mib(size_bytes: int) -> str:
    """Whole MiB where the slot comes from one, since it is cut to whole tokens."""
    return f"{size_bytes / MIB:.0f}"
