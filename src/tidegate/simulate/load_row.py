"""One request of a load run, as far as a calibration needs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRow:
    """Times are seconds on one clock, from sending to what the client saw."""

    at: float
    """It reached the engine: sent, and let through by a gateway's queue where there is one."""
    first_at: float
    """The first token; of an answer that was not streamed it says nothing."""
    last_at: float
    """The last token; of one that the client left, when it left."""
    prompt_tokens: int
    """Those that the engine computed: without what it took from its prefix cache."""
    output_tokens: int
    max_tokens: int = 0
    """What the request allowed; 0: it did not say."""
    phase: str = ""
    engine: str = ""
    """Which of several equal engines; each has its own time line."""
    label: str = ""
    tenant: str = ""
    is_stream: bool = True
    is_whole: bool = True
    """False: the client left before the end. It loads the engine and is not compared."""

    @property
    def ttft_s(self) -> float:
        return self.first_at - self.at

    @property
    def e2e_s(self) -> float:
        return self.last_at - self.at

    @property
    def tpot_s(self) -> float | None:
        """None below two tokens, and of an answer that was not streamed."""
        if self.output_tokens < 2 or not self.is_stream:
            return None
        return (self.last_at - self.first_at) / (self.output_tokens - 1)
