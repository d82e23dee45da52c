"""What the user of a named plan may change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidegate.load.ask import Refusal
from tidegate.load.workloads.recipe import Nonce, Recipe
from tidegate.wire.header_names import DEADLINE_MS

LEAST_RUNS = 20
"""A single phase has at least so many, however short the run is made."""
IGNORE_EOS = ',"ignore_eos":true'


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    seed: int = 0
    scale: float = 1.0
    """On rates and numbers of users."""
    time_scale: float = 1.0
    """On durations and numbers of runs; 0.1 for a quick look."""
    rate_per_s: float | None = None
    """Base rate of phases that come at their own times; None: the plan's own."""
    context_tokens: int | None = None
    """Of the target's model. None: not known, so nothing is cut to it and nothing can be made longer than it."""
    max_prompt_tokens: int | None = None
    """Longer prompts are cut to it."""
    max_output_tokens: int | None = None
    """Larger bounds on answers are cut to it."""
    nonce: Nonce | None = None
    """None: the plan's own, mostly at the start."""
    stream_share: float | None = None
    """Of the requests, how many ask for a stream; None: the plan's own, mostly all."""
    deadline_ms: int | None = None
    """Told with each request (``x-tidegate-deadline-ms``)."""
    ignores_eos: bool = False
    """Asks engines to fill every answer to its bound (``ignore_eos`` of vLLM and llama.cpp)."""
    overlong_share: float = 0.05
    """Of a soak's requests (SPEC S1-60)."""
    is_overlong_answered: bool = False
    """The target truncates over-long prompts or sends them to a longer model; else they must be refused."""
    wants_codes: bool = True
    """Refusals name their reasons as Tidegate does; False: of a bare engine only the status can be judged."""
    tenant_keys: dict[str, str] = field(default_factory=dict)
    """API keys by tenant; requests of others have none of their own."""

    def duration(self, seconds: float) -> float:
        return seconds * self.time_scale

    def rate(self, per_s: float) -> float:
        """``per_s`` is a plan's own; the user's, where it is given, takes its place before scaling."""
        return (per_s if self.rate_per_s is None else self.rate_per_s) * self.scale

    def users(self, count: int) -> int:
        return max(1, round(count * self.scale))

    def runs(self, count: int) -> int:
        return max(min(count, LEAST_RUNS), round(count * self.time_scale))

    def fitted(self, recipe: Recipe) -> Recipe:
        """With these bounds, headers and ways."""
        headers = recipe.headers + self.key_headers(recipe.tenant)
        if self.deadline_ms is not None:
            headers += ((DEADLINE_MS.decode(), str(self.deadline_ms)),)
        return replace(
            recipe,
            headers=headers,
            nonce=self.nonce or recipe.nonce,
            stream_share=recipe.stream_share if self.stream_share is None else self.stream_share,
            refusal=self.judged(recipe.refusal),
            more=recipe.more + (IGNORE_EOS if self.ignores_eos else ""),
            most_prompt_tokens=None if recipe.may_exceed else self.max_prompt_tokens,
            most_output_tokens=self.max_output_tokens,
            context_tokens=None if recipe.may_exceed else self.context_tokens,
        )

    def key_headers(self, tenant: str) -> tuple[tuple[str, str], ...]:
        key = self.tenant_keys.get(tenant)
        return () if key is None else (("authorization", f"Bearer {key}"),)

    def judged(self, refusal: Refusal | None) -> Refusal | None:
        """As far as the target can say it."""
        if refusal is None or self.wants_codes:
            return refusal
        return replace(refusal, statuses=refusal.statuses | {422}, codes=frozenset())

    def notes(self) -> dict[str, str]:
        """What differs from the plan as it is meant, in words."""
        said = {
            "scale": f"rates and users x {self.scale:g}" if self.scale != 1.0 else "",
            "time_scale": f"durations and runs x {self.time_scale:g}" if self.time_scale != 1.0 else "",
            "rate": f"{self.rate_per_s:g}/s, given" if self.rate_per_s is not None else "",
            "context": f"{self.context_tokens} tokens" if self.context_tokens is not None else "not known",
            "prompts": f"cut to {self.max_prompt_tokens} tokens" if self.max_prompt_tokens is not None else "",
            "answers": f"bound cut to {self.max_output_tokens} tokens" if self.max_output_tokens is not None else "",
            "nonce": f"at {self.nonce.value}" if self.nonce is not None else "",
            "streams": f"{self.stream_share:.0%} of the requests" if self.stream_share is not None else "",
            "deadline": f"{self.deadline_ms} ms" if self.deadline_ms is not None else "",
            "ignore_eos": "answers are filled to their bound" if self.ignores_eos else "",
        }
        return {key: text for key, text in said.items() if text}
