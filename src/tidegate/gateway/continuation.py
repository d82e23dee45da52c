"""An answer that may go on elsewhere when its replica dies in the middle of it.

Of a stream that may, only complete events go to the client: half an event could not be taken back. What it has seen
is the prompt's continuation for the next replica (``continued_body``), whose stream is joined to it (``seam``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from tidegate.gateway import continued_body
from tidegate.gateway.relay import Relay
from tidegate.gateway.routes import CHAT, COMPLETIONS, Route
from tidegate.gateway.seam import Seam
from tidegate.gateway.transcript import Transcript
from tidegate.policy.decisions import Alteration
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.wire.body import Body
from tidegate.wire.chunks import DONE, data_of, events_in, without_token_ids
from tidegate.wire.sse import EventScan

TEXT, EXACT = "text", "exact"

LONGEST_TAIL_BYTES = 256 * 1024
"""Of an event that is not complete. Above this it goes out as it comes, and the answer cannot go on elsewhere."""

UNBOUNDED_COMPLETION_TOKENS = 16
"""Of vLLM, as of OpenAI's API; llama.cpp and all chats go on until the context is full."""

_ERROR_CODE = re.compile(rb'"code"\s*:\s*(\d{3})\b')


@dataclass(frozen=True, slots=True)
class Terms:
    """How the answers of one upstream are continued."""

    mode: str
    """``text`` or ``exact``."""
    kind: str
    """Of its engines, which are all alike."""
    context_tokens: int | None = None

    @property
    def is_exact(self) -> bool:
        return self.mode == EXACT

    def allow(self, route: Route) -> bool:
        """A chat's text goes on where the engine adds it to the rendered prompt, and a completion's anywhere."""
        if self.is_exact:
            return self.kind == "vllm" and route in (CHAT, COMPLETIONS)
        return route is COMPLETIONS or (route is CHAT and self.kind == "llamacpp")


def terms_of(mode: str, kinds: set[str], replicas: int, context_tokens: int | None) -> Terms | None:
    """None: nothing is continued there. Replicas of several kinds would read the same body differently, of an unknown
    kind nobody knows how, and where there is one replica there is no other."""
    if mode not in (TEXT, EXACT) or replicas < 2 or len(kinds) != 1:
        return None
    (kind,) = kinds
    return Terms(mode, kind, context_tokens) if kind in ("llamacpp", "vllm") else None


def continuation_for(terms: Terms | None, body: Body | None, route: Route) -> Continuation | None:
    """What is kept of one stream; None where it could not be continued however far it came."""
    if body is None or terms is None or not terms.allow(route):
        return None
    if terms.is_exact and continued_body.objection(body.edited({}), is_exact=True):
        # Its token ids would be asked for in vain.
        return None
    return Continuation(terms, body, route)


class Continuation:
    """Of one request that streams. ``show`` stands in the way of every read; all else is for the rare case."""

    __slots__ = (
        "_body",
        "_is_chat",
        "_seam",
        "_tail",
        "_terms",
        "_told_tokens",
        "alteration",
        "count",
        "engines_error",
        "first_replica",
        "is_holding",
        "joined",
        "last_relay",
        "transcript",
        "why_not",
    )

    def __init__(self, terms: Terms, body: Body, route: Route) -> None:
        self._terms = terms
        self._body = body
        self._is_chat = route is CHAT
        self.transcript = Transcript()
        self._tail = b""
        """Of an event that is not complete."""
        self.is_holding = True
        self._seam: Seam | None = None
        """Joins the stream that is running, if it is not the first."""
        self.engines_error = b""
        """The error event with which the stream ended, which the client has not seen."""
        self.count = 0
        """Continuations that were asked for."""
        self._told_tokens = 0
        self.joined = 0
        """Of them, those of which a stream came."""
        self.last_relay: Relay | None = None
        """Of the stream that was cut, until the next one begins."""
        self.alteration: Alteration | None = None
        """What was altered of the call for the first replica, and is for all."""
        self.why_not = ""
        """Why it did not go on the last time."""
        self.first_replica = ""

    # ---- while a stream runs ----------------------------------------------------------------

    def begin(self, replica: str, relay: Relay) -> None:
        """``replica`` begins to answer, by way of ``relay``."""
        self._tail = self.engines_error = b""
        if not self.first_replica:
            self.first_replica = replica
        if self.count:
            self.joined += 1
            label = f": tidegate continued on {replica}\n\n".encode("latin-1", "replace")
            self._seam = Seam(self.transcript, label, is_chat=self._is_chat)
        last, self.last_relay = self.last_relay, None
        if last is not None:
            relay.follow(last)

    def show(self, data: bytes, scan: EventScan) -> bytes:
        """What of this read, and of what was held back, goes to the client now: every event that is complete."""
        held = scan.unfinished_bytes
        if held or self._tail:
            data = self._complete(data, held)
        if scan.error_ends_at is not None:
            data = self._before_error(data)
        if not data:
            return data
        self.transcript.take(data)
        if self._seam is not None and self.is_holding:
            return self._seam.joined(data)
        return without_token_ids(data) if self._terms.is_exact else data

    def rest(self) -> bytes:
        """What is left at the regular end of a stream whose last event has no empty line after it."""
        tail, self._tail = self._tail, b""
        return tail if self._seam is None or not tail else self._seam.joined(tail.rstrip(b"\r\n"))

    @property
    def is_finished(self) -> bool:
        """The engine has said why the answer ends, or nobody knows."""
        self.transcript.read()
        return self.transcript.is_finished or bool(self.transcript.problem)

    def counted(self, prompt_tokens: int | None, output_tokens: int | None) -> tuple[int | None, int | None]:
        """What the running stream says of its tokens, as the whole answer's."""
        seam = self._seam
        return (prompt_tokens, output_tokens) if seam is None else seam.counted(prompt_tokens, output_tokens)

    # ---- when it is cut ---------------------------------------------------------------------

    def takes(self, outcome: Outcome, *, has_forwarded: bool) -> bool:
        """An attempt that ended so may be followed by one that goes on. ``has_forwarded``: the client has a part."""
        effect = EFFECTS[outcome]
        if has_forwarded:
            return effect.resume
        # What a whole answer is worth in the middle of a stream, another replica would not say either.
        return bool(self.count) and effect.retry and outcome is not Outcome.INVALID_OUTPUT

    def may_go_on(self, alteration: Alteration | None) -> bool:
        """Another replica could go on with this answer; if not, ``why_not`` says why. ``alteration``: of the call, as
        it went to the first replica."""
        if not self.count:
            self.alteration = alteration
        self.why_not = self._problem()
        return not self.why_not

    def added_to(self, detail: str) -> str:
        """What went wrong, and why the answer did not go on elsewhere, if anybody tried."""
        why_not = f"it did not go on elsewhere: {self.why_not}" if self.why_not else ""
        return "; ".join(filter(None, (detail, why_not)))

    def go_on_after(self, relay: Relay | None) -> int:
        """It is to go on elsewhere. Tokens that the client has and the last replica did not begin with: at least 1,
        though it may have been a chunk without text."""
        self.count += 1
        self.last_relay = relay or self.last_relay
        tokens = self.transcript.tokens
        new, self._told_tokens = tokens - self._told_tokens, tokens
        return max(1, new)

    def _problem(self) -> str:
        transcript, terms, body = self.transcript, self._terms, self._body
        transcript.read()
        transcript.forget_unseen()
        if transcript.is_finished:
            return "the answer is complete, but for the usage that was asked for"
        if body.images or body.prompts > 1:
            return "its prompt is more than one text"
        text = body.edited({})
        most = None if self.alteration is None else self.alteration.max_tokens
        left = continued_body.tokens_left(text, transcript.tokens, self._most_tokens)
        if (left is not None and left <= 0) or (most is not None and most <= transcript.tokens):
            return "all that was asked for is written, and only the engine knows why it ended"
        problem = transcript.problem or continued_body.objection(text, is_exact=terms.is_exact)
        if problem or not terms.is_exact:
            return problem or continued_body.objection_to(transcript.text)
        return self._problem_with_ids()

    def _problem_with_ids(self) -> str:
        transcript = self.transcript
        if transcript.tokens and (transcript.prompt_ids is None or len(transcript.token_ids) != transcript.tokens):
            return "the engine did not tell the token ids"
        if self._is_chat and self._terms.context_tokens is None:
            return "the length of the engine's context is not known"
        return ""

    @property
    def is_complete(self) -> bool:
        """Everything but the formal end of the stream has come, and nobody waits for a usage."""
        self.transcript.read()
        options = self._body.fields.stream_options
        return self.transcript.is_finished and not (options and options.get("include_usage"))

    @property
    def is_clients_fault(self) -> bool:
        """The engine's error event blames the request: another replica would say the same."""
        code = _ERROR_CODE.search(self.engines_error)
        return code is not None and int(code[1]) < 500

    def body(self, body: bytes) -> bytes:
        """``body``, made for the next replica, so that it goes on."""
        transcript, terms = self.transcript, self._terms
        if not self.count or not transcript.tokens:
            return body
        if terms.is_exact and transcript.prompt_ids is not None:
            return continued_body.with_ids(body, transcript.prompt_ids, transcript.token_ids, self._most_tokens)
        prompt = Raw(bytes(self._body.fields.prompt))
        return continued_body.with_text(body, prompt, transcript.text, transcript.tokens, self._most_tokens)

    @property
    def path(self) -> bytes | None:
        """Where the next body goes, if not where the client's went."""
        is_elsewhere = self.count and self._terms.is_exact and self.transcript.tokens and self._is_chat
        return COMPLETIONS.path.encode() if is_elsewhere else None

    @property
    def _most_tokens(self) -> int | None:
        """What the engine would write at most if the client set no bound; None: until the context is full."""
        terms = self._terms
        if not self._is_chat and terms.kind == "vllm":
            return UNBOUNDED_COMPLETION_TOKENS
        # Its ids go on as a completion, which has that bound too.
        return terms.context_tokens if terms.is_exact else None

    @property
    def asks(self) -> dict[str, Any]:
        """Fields of the body without which the engine would not tell what is needed."""
        return {"return_token_ids": True} if self._terms.is_exact else {}

    def _complete(self, data: bytes, held: int) -> bytes:
        """What was held back and ``data``, without the ``held`` bytes at its end that are held back now."""
        if not self.is_holding:
            return data
        data = self._tail + data
        if held > LONGEST_TAIL_BYTES:
            self.is_holding, self._tail = False, b""
            self.transcript.give_up("one of its events is too long to be held back")
            return data
        at = len(data) - held
        self._tail = data[at:]
        return data[:at]

    def _before_error(self, data: bytes) -> bytes:
        """``data`` up to the engine's error event, which is kept apart."""
        kept: list[bytes] = []
        for event in events_in(data):
            if self.engines_error or _is_error(event):
                self.engines_error = self.engines_error or event + b"\n\n"
            else:
                kept.append(event + b"\n\n")
        return b"".join(kept)


def _is_error(event: bytes) -> bool:
    if event.startswith(b"event:") and event[6:].lstrip().startswith(b"error"):
        return True
    data = data_of(event)
    if data is None or data == DONE:
        return False
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) and bool(found.get("error"))
