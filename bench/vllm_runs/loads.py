"""Loads for the KV pool of the project's vLLM notes: 80 usable blocks of 32 tokens, 32 clients in a closed loop.

``exact``: each client declares exactly what it will get (outputs uniform in 64..256).
``early``: each client declares 256 and gets less (lognormal, median 80, sigma 0.7, within 8..256; mean 93).
``over``:  the same answers, declared as 512.
``mixed``: early and exact in turn, by quarters, so that the traffic shifts three times.
``bimodal``: another shape than the settings were chosen on: 70 % short (uniform 8..48), 30 % long (150..256), all
declare 256.

Prompts are 50..389 tokens (mean 219), behind a prefix that all share when asked to.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

KINDS = ("exact", "early", "over", "mixed", "bimodal")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what is sent, what the client declares, and what it will get."""

    prompt_tokens: int
    declared_tokens: int
    output_tokens: int
    shared_tokens: int = 0
    """At the beginning of the prompt, the same in every call of the load."""


def draw(kind: str, count: int, seed: int, *, shared_tokens: int = 0) -> list[Call]:
    """``count`` calls; equal arguments give equal calls on every platform."""
    source = random.Random(f"{kind} {seed}")
    return [_call(_kind_of(kind, index, count), source, shared_tokens) for index in range(count)]


def _kind_of(kind: str, index: int, count: int) -> str:
    if kind != "mixed":
        return kind
    return ("early", "exact")[index * 4 // count % 2]


def _call(kind: str, source: random.Random, shared_tokens: int) -> Call:
    prompt = shared_tokens + round(source.uniform(50, 400) * 0.97 + 1)
    if kind == "exact":
        output = source.randint(64, 256)
        return Call(prompt, output, output, shared_tokens)
    if kind == "bimodal":
        output = source.randint(8, 48) if source.random() < 0.7 else source.randint(150, 256)
        return Call(prompt, 256, output, shared_tokens)
    output = min(256, max(8, round(source.lognormvariate(math.log(80), 0.7))))
    return Call(prompt, 512 if kind == "over" else 256, output, shared_tokens)
