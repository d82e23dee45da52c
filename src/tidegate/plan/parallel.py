"""Over how many GPUs to spread a model: tensor parallel, pipeline parallel, or replicas beside each other.

Tensor parallelism (TP) divides weights and KV of every layer, and asks for fast links, since every layer ends in
an all-reduce. Pipeline parallelism (PP) divides the layers, and asks for little traffic, but a token passes all
stages one after the other. Replicas share nothing: each pays for its own weights, and fails alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.plan.footprint import Footprint

SIZES = (1, 2, 4, 8, 16)
MOST_GPUS = 8
"""Of one host, where --count does not tell."""
WORTH = 1.5
"""A larger TP is pointed out when it holds so many times more sequences per GPU."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to spread the model."""

    footprint: Footprint
    context_tokens: int

    @property
    def gpus(self) -> int:
        return self.footprint.serving.gpus

    @property
    def label(self) -> str:
        serving = self.footprint.serving
        return f"TP={serving.tensor_parallel}" + (f" PP={serving.stages}" if serving.stages > 1 else "")

    @property
    def sequences(self) -> int:
        return self.footprint.sequences(self.context_tokens)

    @property
    def fits(self) -> bool:
        return self.sequences > 0

    @property
    def sequences_per_gpu(self) -> float:
        return self.sequences / self.gpus


def spread(footprint: Footprint, tensor_parallel: int, stages: int) -> Footprint:
    """The same model and GPU, spread so."""
    return replace(footprint, serving=replace(footprint.serving, tensor_parallel=tensor_parallel, stages=stages))


def choices(footprint: Footprint, context_tokens: int, count: int | None) -> list[Choice]:
    """Every TP size that divides the model, and every PP size, on at most ``count`` GPUs; fewest GPUs first, TP
    before PP."""
    most = max(count or MOST_GPUS, footprint.serving.gpus)
    return [Choice(spread(footprint, *sizes), context_tokens) for sizes in _sizes(footprint, most)]


def _sizes(footprint: Footprint, most: int) -> Iterator[tuple[int, int]]:
    own = (footprint.serving.tensor_parallel, footprint.serving.stages)
    found = {own}
    for size in SIZES:
        if size <= most and footprint.model.divides(size):
            found.add((size, 1))
        if 1 < size <= min(most, footprint.model.layer_count):
            found.add((1, size))
    return iter(sorted(found, key=lambda sizes: (sizes[0] * sizes[1], sizes[1])))


def fewest_gpus(options: list[Choice]) -> Choice | None:
    """The first that holds a sequence of the planned length."""
    return next((each for each in options if each.fits), None)


def advice(options: list[Choice], count: int | None) -> list[str]:
    """Sentences: the fewest GPUs that will do, what more would bring, and how to use all of them."""
    least = fewest_gpus(options)
    if least is None:
        return []
    found = [f"{least.label} is the least that holds {least.context_tokens} tokens: {_held(least)}"]
    tensor = [each for each in options if each.footprint.serving.stages == 1]
    better = max(tensor, key=lambda each: each.sequences_per_gpu, default=least)
    if better.sequences_per_gpu >= least.sequences_per_gpu * WORTH:
        alone = better.gpus // least.gpus * least.sequences
        found.append(
            f"{better.label} holds {better.sequences_per_gpu / least.sequences_per_gpu:.1f} × as many per GPU, because "
            f"the weights are stored once: {_held(better)}, against {alone} as replicas of {least.label}. It wants "
            "NVLink or the like, and one failure stops all of it"
        )
    if least.footprint.serving.stages > 1:
        found.append("PP, as no TP size that divides the heads fits: cheap on links, but a token passes every stage")
    if count and count >= 2 * least.gpus:
        found.append(f"{count} GPUs carry {count // least.gpus} replicas of {least.label}, each failing alone")
    return found


def _held(choice: Choice) -> str:
    return f"{_counted(choice.sequences, 'sequence')} on {_counted(choice.gpus, 'GPU')}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
