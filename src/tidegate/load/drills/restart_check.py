"""What is checked of a replica that was started again (SPEC S1-64)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class RestartCheck:
    """Times in seconds; None: nobody could tell."""

    replica: str
    is_loaded: bool | None = None
    """It lists its model and has written an answer."""
    back_s: float | None = None
    """From its end until it answered again."""
    first_request_s: float | None = None
    """E2E of the first request that was sent to it directly: warm-up included."""
    second_request_s: float | None = None
    """The same request again."""
    cached_before: int | None = None
    """Prompt tokens of that request that came from the prefix cache: before the restart, when it was known."""
    cached_first: int | None = None
    cached_second: int | None = None
    resident_before_bytes: int | None = None
    resident_after_bytes: int | None = None
    gpu_before_bytes: int | None = None
    gpu_after_bytes: int | None = None
    problem: str = ""

    @property
    def warm_share(self) -> float | None:
        """Of the prompt tokens that were cached before, what was cached though nobody had asked this since. The part
        that every chat begins with may be there again: other requests have brought it."""
        if self.cached_first is None or not self.cached_before:
            return None
        return self.cached_first / self.cached_before

    @property
    def residual(self) -> float | None:
        """Memory after the restart, as a multiple of that before it: well above 1 is what the old one left behind."""
        before, after = (
            (self.gpu_before_bytes, self.gpu_after_bytes)
            if self.gpu_before_bytes
            else (self.resident_before_bytes, self.resident_after_bytes)
        )
        return after / before if before and after else None
