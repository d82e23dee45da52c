"""What became of one request, as its client saw it: a row of the records."""

from __future__ import annotations

import msgspec

from tidegate.load.client_outcome import ANSWERED, ClientOutcome


class Sample(msgspec.Struct, array_like=True, gc=False):
    """Times are seconds since the run began (one clock for all its processes); 0.0 for a moment that never came."""

    phase: str
    target: str
    index: int
    label: str
    due_at: float
    """When it was to be sent. In a closed loop: when its user was free."""
    sent_at: float
    """The request was handed to the kernel; where no connection was free, a new one was asked for, whose setting up is
    then part of the request's time, as it is of a user's."""
    ended_at: float
    outcome: ClientOutcome
    tenant: str = ""
    session: str = ""
    worker: int = 0
    is_stream: bool = True
    status: int = 0
    code: str = ""
    """Of an error: its ``code``, else the exception's name."""
    head_at: float = 0.0
    """The head of the answer was complete."""
    first_at: float = 0.0
    """The first piece with a part of the answer (text or tool call); of a whole answer: the first byte of its body."""
    last_at: float = 0.0
    """The last such piece."""
    chunks: int = 0
    """Events with a part of the answer."""
    reads: int = 0
    """Reads that brought such events: several events in one read came together."""
    worst_gap_s: float = 0.0
    """Longest time between two such reads."""
    prompt_tokens: int = 0
    """As the engine counted them (usage); 0: it did not say."""
    cached_tokens: int = 0
    """Of those, how many the engine took from its prefix cache, by its own word (``cached_tokens`` of the usage)."""
    output_tokens: int = 0
    """As the engine counted them; without usage the number of chunks, and ``is_counted`` is false."""
    is_counted: bool = False
    """``output_tokens`` is the engine's own count."""
    meant_tokens: int = 0
    """Prompt tokens that the workload meant to send."""
    max_tokens: int = 0
    finish_reason: str = ""
    degraded: str = ""
    """The label of a lesser answer."""
    queue_s: float | None = None
    """The gateway's own word for the time in its queue (``x-tidegate-queue-ms``); None: it did not say."""
    retry_after_s: float = 0.0
    """When a refusal said to come back; 0.0: it did not say."""
    replica: str = ""
    attempts: int = 1
    continuations: int = 0
    """How often another replica went on with a stream that was cut, by the gateway's own word in it."""
    is_reused: bool = False
    """Sent on a connection that had carried another request."""
    text: str = ""
    """The answer, where the ask keeps it."""
    extra: dict[str, str] = {}

    @property
    def is_answered(self) -> bool:
        return self.outcome in ANSWERED

    @property
    def ttft_s(self) -> float:
        """From sending to the first part of the answer. Meaningful where ``first_at`` is set."""
        return self.first_at - self.sent_at

    @property
    def e2e_s(self) -> float:
        """From sending to the end."""
        return self.ended_at - self.sent_at

    @property
    def scheduled_e2e_s(self) -> float:
        """From when it was due: a wait that the generator's own delay cannot hide (coordinated omission)."""
        return self.ended_at - self.due_at

    @property
    def lag_s(self) -> float:
        """How late the generator sent it."""
        return self.sent_at - self.due_at

    @property
    def tpot_s(self) -> float | None:
        """(last - first) / (tokens - 1), as ``vllm bench serve``; None below two tokens, and of whole answers."""
        if self.output_tokens < 2 or not self.is_stream or self.last_at <= self.first_at:
            return None
        return (self.last_at - self.first_at) / (self.output_tokens - 1)
