"""What to do about a model that does not fit, each remedy computed before it is named (SPEC S3-57)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tidegate.plan.footprint import Footprint
from tidegate.plan.gpus import GIB, MIB, gpus
from tidegate.plan.parallel import MOST_GPUS, choices, fewest_gpus
from tidegate.plan.precision import kv_bits, weight_bits

HIGHEST_UTILIZATION = 0.88
"""Above it out-of-memory errors were seen now and then (S3-51)."""

Rewritten = Callable[[str], Footprint | None]
"""The same plan with the weights in another format; None where they cannot be counted."""


def problem(footprint: Footprint, context_tokens: int) -> str | None:
    """What does not fit, or None."""
    if footprint.holds(context_tokens):
        return None
    pool_bytes, longest = footprint.pool_bytes, footprint.longest(context_tokens)
    if pool_bytes <= 0:
        needed = footprint.budget_bytes - pool_bytes
        return (
            f"{footprint.model.name} does not fit: weights, activations and CUDA context take {needed / GIB:.1f} GiB "
            f"of each {footprint.gpu.name}, and the engine may use {footprint.budget_bytes / GIB:.1f} GiB "
            f"({footprint.serving.utilization:g} of its memory)"
        )
    needed = footprint.paging.sequence_bytes(context_tokens)
    return (
        f"one sequence of {context_tokens} tokens does not fit: it needs {needed / MIB:.0f} MiB of KV and the pool has "
        f"{pool_bytes / MIB:.0f} MiB. vLLM would refuse to start; the longest sequence that fits has {longest} tokens"
    )


def remedies(footprint: Footprint, context_tokens: int, count: int | None, rewritten: Rewritten) -> list[str]:
    """Changes that make it fit, the cheapest first; one sentence where none does."""
    found = [*_shorter(footprint, context_tokens), *_settings(footprint, context_tokens)]
    found += [*_spread(footprint, context_tokens, count), *_lighter(footprint, context_tokens, rewritten)]
    found += _larger(footprint, context_tokens)
    return found or [
        "no single change makes it fit: combine tensor parallelism with quantized weights, or take a smaller model"
    ]


def _shorter(footprint: Footprint, context_tokens: int) -> Iterator[str]:
    longest = footprint.longest(context_tokens) // 256 * 256
    if longest:
        yield f"--max-model-len {longest}: the engine starts, and longer requests are refused with 4xx"


def _settings(footprint: Footprint, context_tokens: int) -> Iterator[str]:
    serving = footprint.serving
    raised = replace(footprint, serving=replace(serving, utilization=HIGHEST_UTILIZATION))
    if serving.utilization < HIGHEST_UTILIZATION and raised.holds(context_tokens):
        yield f"--gpu-memory-utilization {HIGHEST_UTILIZATION:g}, if nothing else runs on the GPU"
    halved = replace(footprint, serving=replace(serving, kv_dtype="fp8"))
    if kv_bits(footprint.kv_dtype) > kv_bits("fp8") and halved.holds(context_tokens):
        yield "--kv-cache-dtype fp8: half the KV; compare answers before you rely on it"


def _spread(footprint: Footprint, context_tokens: int, count: int | None) -> Iterator[str]:
    more = [each for each in choices(footprint, context_tokens, MOST_GPUS) if each.gpus > footprint.serving.gpus]
    if (least := fewest_gpus(more)) is not None:
        flag = "--tensor-parallel-size" if least.footprint.serving.stages == 1 else "--pipeline-parallel-size"
        at_hand = "" if count is None or least.gpus <= count else f" ({count} at hand)"
        yield f"{flag} {least.gpus}: {least.gpus} GPUs{at_hand} hold {least.sequences} such"


def _lighter(footprint: Footprint, context_tokens: int, rewritten: Rewritten) -> Iterator[str]:
    if footprint.model.parameters is None:
        return
    stored = footprint.model.weights.total_bytes * 8 / footprint.model.parameters
    for dtype, wording in (("fp8", "FP8 weights"), ("awq", "4-bit weights (AWQ or GPTQ)")):
        if stored < float(weight_bits(dtype)) * 1.1:
            continue
        lighter = rewritten(dtype)
        if lighter is not None and lighter.holds(context_tokens):
            room = lighter.sequences(context_tokens)
            yield f"{wording}: {lighter.weights_bytes / GIB:.1f} GiB on each GPU leaves room for {room} such"
            return


def _larger(footprint: Footprint, context_tokens: int) -> Iterator[str]:
    for each in gpus():
        larger = replace(footprint, gpu=each)
        if each.memory_bytes > footprint.gpu.memory_bytes and larger.holds(context_tokens):
            yield f"a larger GPU: {each.name} holds {larger.sequences(context_tokens)} such"
            return
