"""A llama.cpp server, read through /health, /slots and /metrics.

llama.cpp allocates deterministically: each of its *slots* owns n_ctx ÷ n_parallel tokens of KV and runs
one sequence; there is no preemption. (A server started with --kv-unified shares the pool instead and
does not say so: configure ``kv_tokens`` for it.)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.llamacpp.shapes import Counted, EngineSlot, Props, Templated, Tokenized
from tidegate.engines.openai import UNKNOWN_PATH, OpenaiServer
from tidegate.engines.prompts import CHAT, COMPLETIONS, completion_prompts
from tidegate.engines.samples import Samples
from tidegate.errors import EngineError, TidegateError
from tidegate.policy.reading import Capacity, Reading

MARK = b"llamacpp:"
"""Every metric of llama.cpp begins so; it is one of the two things the engine is recognised by."""

RUNNING = "llamacpp:requests_processing"
DEFERRED = "llamacpp:requests_deferred"

LOOK_EVERY_S = 1.25
"""llama.cpp notices that a client has left only after a second in which it finished no result for
anybody (``recv_with_timeout`` waits one second, and each result of any request starts that second
anew), and /slots and /metrics are such results. Measured: looked at every 0.2 s, a prefill whose
client had left ran to its end (13.8 s); every 1.3 s, it stopped within 1.3 s. A quarter of a second is
added for a busy machine."""

COUNT_WITHIN_S = 5.0
"""A tokenizer call takes some milliseconds per thousand tokens."""


@dataclass(frozen=True, slots=True)
class Places:
    """What /slots tells."""

    running: int
    held_tokens: int
    """KV that the running sequences own, used or not."""


class LlamaServer(OpenaiServer):
    """Sequences and KV as slots; exact token counts through its tokenizer."""

    kind = "llamacpp"
    look_every_s = LOOK_EVERY_S
    confirms_aborts = True
    abort_grace_s = 120.0
    """An abort is noticed late, at the end of a prefill or, while other streams run, of a whole answer that
    is not streamed. Until then the slot is really taken, so readings decide and this is only the last resort."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._has_input_tokens = True

    async def read(self, now: float) -> Reading:
        """Part of ``Engine``."""
        reading = await self.read_health(now)
        if not reading.ready:
            return reading
        try:
            # Side by side, so that they disturb the engine's disconnect timer once and not twice.
            places, page = await asyncio.gather(self._places(), self._page())
        except (OSError, TidegateError):
            # It is alive and does not tell: figures are missing, nothing is wrong with the engine (R6).
            return reading
        if places is not None:
            reading.running, reading.kv_used_tokens = places.running, places.held_tokens
        elif page is not None:
            reading.running = page.total(RUNNING)
        reading.waiting = None if page is None else page.total(DEFERRED)
        return reading

    async def capacity(self) -> Capacity:
        """Part of ``Engine``: one slot is one sequence's part of the KV."""
        props = await self.address.ask_for(Props, "/props")
        sequences, context_tokens = props.total_slots, props.default_generation_settings.n_ctx
        return Capacity(
            kv_tokens=sequences * context_tokens,
            slot_tokens=context_tokens,
            sequences=sequences,
            context_tokens=context_tokens,
        )

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """Part of ``Engine``."""
        if path == CHAT:
            return (await self._count_chat(body),)
        prompts = completion_prompts(body) if path == COMPLETIONS else None
        if prompts is None:
            return None
        texts = iter(await asyncio.gather(*(self._count_text(each) for each in prompts if isinstance(each, str))))
        return tuple(each if isinstance(each, int) else next(texts) for each in prompts)

    async def _count_chat(self, body: bytes) -> int:
        if self._has_input_tokens:
            reply = await self.address.ask(f"{CHAT}/input_tokens", body, COUNT_WITHIN_S)
            if reply.status == 200:
                return self.address.decode(Counted, f"{CHAT}/input_tokens", reply).input_tokens
            if reply.status not in UNKNOWN_PATH:
                raise EngineError(f"{self.address.url} cannot count this prompt: {self.address.describe(reply)}")
            self._has_input_tokens = False
        templated = await self.address.ask_for(Templated, "/apply-template", body, COUNT_WITHIN_S)
        return await self._count_text(templated.prompt)

    async def token_ids(self, text: str) -> list[int]:
        """Part of ``Engine``: as its own /v1/completions reads a prompt."""
        question = msgspec.json.encode({"content": text, "add_special": True, "parse_special": True})
        return (await self.address.ask_for(Tokenized, "/tokenize", question, COUNT_WITHIN_S)).tokens

    async def _count_text(self, text: str) -> int:
        return len(await self.token_ids(text))

    async def _places(self) -> Places | None:
        """None: the server was started without --slots."""
        reply = await self.address.ask("/slots")
        if reply.status != 200:
            return None
        slots = self.address.decode(list[EngineSlot], "/slots", reply)
        taken = [slot.n_ctx for slot in slots if slot.is_processing]
        return Places(len(taken), sum(taken))

    async def _page(self) -> Samples | None:
        """None: the server was started without --metrics."""
        reply = await self.address.ask("/metrics")
        return Samples(reply.body, (RUNNING, DEFERRED)) if reply.status == 200 else None
