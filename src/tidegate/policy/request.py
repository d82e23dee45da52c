"""What a client asks for, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.token_source import TokenSource

NEVER = float("inf")
ESTIMATE_SLACK = 1.3
"""An estimated prompt may be off by this factor; an exact one is not."""


@dataclass(slots=True)
class Request:
    """One request as the policies see it. Times are seconds on the driver's clock.

    Created by a driver at arrival and never changed by it afterwards (``Path.amend`` sets the
    exact token count). Not frozen, because a frozen dataclass costs four times as much to make.
    """

    id: int
    """Unique for as long as the process runs."""
    upstream: str
    """Public model name: the queue's key."""
    arrived_at: float
    draw: int
    """64 random bits from the driver; every choice made for this request is a mix of them."""
    prompt_tokens: int = 1
    """Prompt tokens of all sequences' shared prompt (estimated first, exact after ``amend``)."""
    prompt_exact: bool = False
    max_tokens: int | None = None
    """Output tokens wanted per sequence; None when the client set no bound."""
    sequences: int = 1
    """Answers generated beside each other: ``n`` × list prompts."""
    body_bytes: int = 0
    streaming: bool = True
    tenant: str = "default"
    session: str | None = None
    source: str | None = None
    class_hint: str | None = None
    """Service class the client named; None lets ``classes`` decide by length."""
    key: str | None = None
    """The client's own request id: a repeat under the same key keeps its first arrival time."""
    cache_key: bytes | None = None
    """Digest under which a finished answer may be reused for this tenant; None: never."""
    first_byte_by: float = NEVER
    """The client leaves at this time if nothing has come back."""
    deadline_at: float = NEVER
    """The answer is worthless after this time."""
    prefixes: tuple[tuple[int, float], ...] = ()
    """Driver's stable digests of the session (share 1) and of the prompt's beginnings, the longest first,
    each with the share of the prompt that it stands for. Empty: affinity has nothing to go by."""
    prompts: int = 1
    """Different prompts in one call, each of ``prompt_tokens`` on average."""
    estimated_tokens: int = 0
    """What ``prompt_tokens`` was before it was counted; 0: it still is the estimate, or came exact."""
    counted_tokens: int | None = None
    """Exact, by ``counted_by``. Equal to ``prompt_tokens`` unless it came after placement."""
    counted_by: TokenSource = TokenSource.ESTIMATE
    path: str = ""
    """Of the URL, for class rules."""
    headers: dict[str, str] | None = None
    """Of those that class rules name, the ones it carries; names in lower case."""
    max_wait_s: float | None = None
    """Longest stay in the queue in place of its class's: nobody stands at the door for the answer to a job."""
    service_class: str = "interactive"
    """Set by ``Path.offer``."""
    in_burst: bool = False
    """It came while more requests than usual did; set by ``Path.offer``."""
    user: str | None = None
    """Whom the body's ``user`` names: OpenAI's stable name of an end user, beside the session."""

    def take_count(self, tokens: int, source: TokenSource) -> None:
        """Decide on ``tokens`` from here on."""
        self.estimated_tokens = self.prompt_tokens
        self.prompt_tokens = self.counted_tokens = tokens
        self.counted_by, self.prompt_exact = source, True
