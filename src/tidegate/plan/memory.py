"""``plan memory``: one model on one kind of GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate.errors import ConfigError
from tidegate.plan.footprint import Footprint, recommended_sequences
from tidegate.plan.model import LLAMA_CPP
from tidegate.plan.parallel import Choice, choices, fewest_gpus, spread
from tidegate.plan.precision import KV_BITS
from tidegate.plan.remedies import Rewritten
from tidegate.plan.slot_sizes import max_model_len
from tidegate.plan.traffic import Traffic

DEFAULT_CONTEXTS = (2048, 4096, 8192, 16384, 32768)
DEFAULT_MAX_MODEL_LEN = 8192
"""The sources' setting for chat (SPEC S3-55), where neither lengths nor a context are given."""
RISKY_UTILIZATION = 0.90


@dataclass(frozen=True)
class MemoryPlan:
    """What was asked, resolved."""

    footprint: Footprint
    rewritten: Rewritten
    """The plan with the weights in another format."""
    contexts: Sequence[int] = ()
    """Sequence lengths asked for; the longest is planned as max_model_len."""
    count: int | None = None
    """GPUs at hand."""
    traffic: Traffic | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        check(self.footprint, self.count)

    @property
    def max_model_len(self) -> int:
        most = self.footprint.model.context_tokens
        if self.contexts:
            return max(self.contexts)
        if self.traffic_max_model_len is not None:
            return self.traffic_max_model_len
        return min(DEFAULT_MAX_MODEL_LEN, most) if most else DEFAULT_MAX_MODEL_LEN

    @property
    def max_model_len_from(self) -> str:
        if self.contexts:
            return "given"
        return "P99 × 1.2" if self.traffic is not None else "default; --from-log or --from-trace gives P99 × 1.2"

    @property
    def rows(self) -> list[int]:
        """Lengths to show."""
        if self.contexts:
            return sorted(set(self.contexts))
        most = self.footprint.model.context_tokens or max(DEFAULT_CONTEXTS)
        return sorted({each for each in DEFAULT_CONTEXTS if each <= most} | {self.max_model_len})

    @property
    def max_num_seqs(self) -> int:
        """At most one sequence per slot of those asked (SPEC C1), else the recommended number; at least 1."""
        found = self.footprint.max_sequences
        if self.footprint.model.engine == LLAMA_CPP:
            # It takes the full length of every sequence at its start.
            return max(1, min(found, self.footprint.sequences(self.max_model_len)))
        return found

    @property
    def overcommit(self) -> str | None:
        """The one line about more sequences than slots (SPEC C1); None where there are enough."""
        serving, slots = self.footprint.serving, self.footprint.slots
        if serving.max_sequences is None or serving.max_sequences <= slots:
            return None
        return (
            f"{serving.max_sequences} sequences asked, {slots} slots of {serving.slot_mib} MiB: at most "
            f"{self.max_num_seqs} run beside each other (recommended: {recommended_sequences(slots)})"
        )

    @property
    def fits(self) -> bool:
        return self.footprint.holds(self.max_model_len)

    @property
    def traffic_max_model_len(self) -> int | None:
        """What the traffic asks for; None without one."""
        if self.traffic is None:
            return None
        return max_model_len(self.traffic, self.footprint, self.footprint.serving.block_tokens)

    def warnings(self) -> list[str]:
        serving, model = self.footprint.serving, self.footprint.model
        found = []
        if serving.utilization > RISKY_UTILIZATION:
            found.append(
                f"utilization {serving.utilization:g} leaves little for what nobody measures; 0.85 to 0.88 is safe"
            )
        if self.overcommit is not None:
            found.append(self.overcommit)
        if self.traffic_max_model_len not in (None, self.max_model_len):
            found.append(
                f"{self.max_model_len} tokens planned; the traffic's P99 × 1.2 is {self.traffic_max_model_len}"
            )
        if model.context_tokens and self.max_model_len > model.context_tokens:
            found.append(f"{self.max_model_len} tokens are more than the {model.context_tokens} the model was made for")
        return found

    def crowding(self) -> list[str]:
        """What happens when every sequence is as long as it may be."""
        full = self.footprint.sequences(self.max_model_len)
        if not self.fits or full >= self.max_num_seqs:
            return []
        held = f"{full} of {self.max_num_seqs} sequences fit at full length: where more long ones meet, the engine "
        return [held + "alone would preempt; the gateway's slots make them wait"]

    def choices(self) -> list[Choice]:
        return choices(self.footprint, self.max_model_len, self.count)


def check(footprint: Footprint, count: int | None) -> None:
    """Raises ConfigError, with every contradiction at once."""
    serving, model = footprint.serving, footprint.model
    problems: list[str] = []
    if serving.kv_dtype.lower() not in KV_BITS:
        problems.append(f"--kv-dtype: {serving.kv_dtype!r} is not one of {', '.join(KV_BITS)}")
    if not 0 < serving.utilization <= 1:
        problems.append(f"--utilization: {serving.utilization:g} must be more than 0 and at most 1")
    if not model.divides(serving.tensor_parallel):
        sizes = [str(size) for size in range(1, 17) if model.divides(size)]
        problems.append(
            f"--tp: {serving.tensor_parallel} does not divide the {model.shape.heads} query heads and {model.kv_heads} "
            f"KV heads of {model.name} evenly; possible: {', '.join(sizes)}"
        )
    if serving.stages > model.layer_count:
        problems.append(f"--pp: {serving.stages} stages for {model.layer_count} layers")
    if count is not None and serving.gpus > count:
        problems.append(f"--tp × --pp: {serving.gpus} GPUs of the {count} at hand (--count)")
    if problems:
        raise ConfigError(problems)


def spread_over(plan: MemoryPlan) -> MemoryPlan:
    """The plan on the fewest of its ``count`` GPUs that hold max_model_len; unchanged where none do."""
    least = fewest_gpus(plan.choices())
    if least is None or plan.count is None:
        return plan
    sizes = least.footprint.serving.tensor_parallel, least.footprint.serving.stages

    def rewritten(dtype: str) -> Footprint | None:
        found = plan.rewritten(dtype)
        return None if found is None else spread(found, *sizes)

    return replace(plan, footprint=spread(plan.footprint, *sizes), rewritten=rewritten)
