"""Rules that put a request into a class by what it is: its length, path, tenant, model, or one of its headers."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRule:
    """All its conditions must hold; None: no condition. Text is compared as it stands, headers without case."""

    service_class: str
    """The class of what it matches."""
    min_prompt_tokens: int | None = None
    """The prompt has at least so many."""
    max_prompt_tokens: int | None = None
    """The prompt has at most so many."""
    min_total_tokens: int | None = None
    """Prompt and wanted output of one answer have at least so many; without ``max_tokens`` the prompt alone counts."""
    max_total_tokens: int | None = None
    """The two have at most so many."""
    path: str | None = None
    """Such as ``/v1/completions``."""
    tenant: str | None = None
    """Of the API key."""
    model: str | None = None
    """The public name."""
    header: str | None = None
    """Name of a header that the request must carry. Only headers that a rule names are read."""
    header_value: str | None = None
    """What the header must say; None: anything."""

    def __post_init__(self) -> None:
        bounds = (self.min_prompt_tokens, self.max_prompt_tokens, self.min_total_tokens, self.max_total_tokens)
        words = (self.path, self.tenant, self.model, self.header)
        if any(bound is not None and bound < 0 for bound in bounds):
            raise ValueError(f"a class rule's token bounds must be at least 0: {bounds}")
        if not any(condition is not None for condition in (*bounds, *words)):
            raise ValueError("a class rule needs a condition, or it would match everything")
        if self.header_value is not None and self.header is None:
            raise ValueError("a class rule has a header_value and no header that must have it")

    def matches(self, request: Request, prompt_tokens: int) -> bool:
        """Whether every condition holds, taking the prompt to be so long."""
        return (
            (self.tenant is None or self.tenant == request.tenant)
            and (self.model is None or self.model == request.upstream)
            and (self.path is None or self.path == request.path)
            and (self.header is None or self._has_header(request))
            and _within(self.min_prompt_tokens, prompt_tokens, self.max_prompt_tokens)
            and _within(self.min_total_tokens, prompt_tokens + (request.max_tokens or 0), self.max_total_tokens)
        )

    def _has_header(self, request: Request) -> bool:
        value = None if request.headers is None else request.headers.get((self.header or "").lower())
        if value is None or self.header_value is None:
            return value is not None
        return value.lower() == self.header_value.lower()


def _within(least: int | None, tokens: int, most: int | None) -> bool:
    return (least is None or tokens >= least) and (most is None or tokens <= most)
