"""Options that the load commands share, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from tidegate.errors import ConfigError
from tidegate.load.plan_options import PlanOptions
from tidegate.load.target import Target
from tidegate.load.target_facts import TargetFacts
from tidegate.load.workloads.recipe import Nonce

Urls = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=]URL...", help="Up to /v1. Several are played in turns and compared."),
]
PlanText = Annotated[
    str, typer.Option("--plan", "-p", help="NAME, NAME@RATE, or a plan file; `load plans` lists them.")
]
Model = Annotated[str | None, typer.Option("--model", help="Where the service lists several.")]
Header = Annotated[
    list[str] | None, typer.Option("--header", metavar="NAME: VALUE", help="Sent with every request; repeatable.")
]
ApiKeyEnv = Annotated[
    str | None, typer.Option("--api-key-env", metavar="VARIABLE", help="Environment variable with the API key.")
]
CaFile = Annotated[str | None, typer.Option("--ca-file", help="PEM file of authorities for https.")]
Admin = Annotated[
    str | None, typer.Option("--admin", metavar="URL", help="Tidegate's admin port of the first target: its metrics.")
]
Seed = Annotated[int, typer.Option("--seed", help="Equal seeds send equal requests at equal times.")]
Scale = Annotated[float, typer.Option("--scale", min=0.0001, help="Times all rates and numbers of users.")]
TimeScale = Annotated[float, typer.Option("--time-scale", min=0.0001, help="Times all durations; 0.1: a quick look.")]
Processes = Annotated[int | None, typer.Option("--processes", min=1, help="That send. Default: by the rate.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Default: load-DATE-TIME here.")]
StepS = Annotated[float, typer.Option("--step-s", min=0.1, help="How long each number of users is held, seconds.")]
MostPrompt = Annotated[
    int | None, typer.Option("--max-prompt-tokens", min=1, help="Longer prompts of the plan are cut to it.")
]
MostOutput = Annotated[
    int | None, typer.Option("--max-output-tokens", min=1, help="Larger bounds on answers are cut to it.")
]
Context = Annotated[
    int | None, typer.Option("--context", min=1, help="Longest conversation, where the service does not say.")
]

NonceAt = Annotated[
    Nonce | None,
    typer.Option(
        "--nonce", help="Where prompts differ: start defeats prefix caches, end keeps them. Default: the plan's."
    ),
]
OverLong = Annotated[
    bool, typer.Option("--over-long-answered", help="Too long prompts are cut or routed there: they must be answered.")
]
DeadlineMs = Annotated[
    int | None, typer.Option("--deadline-ms", min=1, help="Told with each request (x-tidegate-deadline-ms).")
]
StreamShare = Annotated[
    float | None, typer.Option("--stream-share", min=0.0, max=1.0, help="Of the requests. Default: the plan's.")
]
IgnoreEos = Annotated[bool, typer.Option("--ignore-eos", help="vLLM and llama.cpp: every answer fills its bound.")]
TenantKeys = Annotated[
    list[str] | None,
    typer.Option("--tenant-key", metavar="TENANT=VARIABLE", help="Environment variable with its API key; repeatable."),
]
NO_URL = "name the service: tidegate load http://127.0.0.1:8000/v1; `tidegate load plans` lists what can be sent"
FIRST_USERS = 4


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much of a plan is sent."""

    seed: int
    scale: float = 1.0
    time_scale: float = 1.0
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    nonce: Nonce | None = None
    stream_share: float | None = None
    deadline_ms: int | None = None
    ignores_eos: bool = False
    is_overlong_answered: bool = False
    tenant_keys: Mapping[str, str] = field(default_factory=dict)

    def options(self, targets: Sequence[tuple[Target, TargetFacts]]) -> PlanOptions:
        """Cut to the shortest context among the targets that tell theirs."""
        told = [facts.context_tokens for _, facts in targets if facts.context_tokens is not None]
        return PlanOptions(
            seed=self.seed,
            scale=self.scale,
            time_scale=self.time_scale,
            context_tokens=self.context_tokens or min(told, default=None),
            max_prompt_tokens=self.max_prompt_tokens,
            max_output_tokens=self.max_output_tokens,
            nonce=self.nonce,
            stream_share=self.stream_share,
            deadline_ms=self.deadline_ms,
            ignores_eos=self.ignores_eos,
            is_overlong_answered=self.is_overlong_answered,
            tenant_keys=dict(self.tenant_keys),
            wants_codes=all(facts.kind == "tidegate" for _, facts in targets),
        )


def tenant_keys(given: Sequence[str] | None) -> dict[str, str]:
    """API keys by tenant. Raises ConfigError with every mistake."""
    problems, found = [], {}
    for each in given or ():
        tenant, equals, variable = each.partition("=")
        key = os.environ.get(variable)
        if not equals or not tenant:
            problems.append(f"--tenant-key {each}: must be TENANT=VARIABLE")
        elif not key:
            problems.append(f"--tenant-key {each}: the variable {variable} is not set, or empty")
        else:
            found[tenant] = key
    if problems:
        raise ConfigError(problems)
    return found
