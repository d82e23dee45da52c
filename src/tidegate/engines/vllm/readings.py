"""A vLLM server, read through its /metrics.

With data parallelism one page carries a series per engine (label ``engine``): counts and pools add up.
"""

from __future__ import annotations

import asyncio

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.openai import OpenaiServer
from tidegate.engines.prompts import CHAT, COMPLETIONS, chat_fields, completion_prompts
from tidegate.engines.samples import Samples
from tidegate.errors import EngineError, TidegateError
from tidegate.policy.reading import Capacity, Reading

MARK = b"vllm:"
"""Every metric of vLLM begins so; it is what the engine is recognised by."""

CACHE_CONFIG = "vllm:cache_config_info"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
USED_SHARE = "vllm:kv_cache_usage_perc"
PREEMPTIONS = "vllm:num_preemptions_total"
SLEEP_STATE = "vllm:engine_sleep_state"
PREFIX_ASKED = "vllm:prefix_cache_queries_total"
PREFIX_FOUND = "vllm:prefix_cache_hits_total"
TURNED_AWAY = "vllm:admission_rejections_total"
WANTED = (
    CACHE_CONFIG, RUNNING, WAITING, USED_SHARE, PREEMPTIONS, SLEEP_STATE, PREFIX_ASKED, PREFIX_FOUND, TURNED_AWAY,
)  # fmt: skip

CHAT_FIELDS = frozenset(
    {"messages", "tools", "chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}
)
"""What shapes the prompt. The model is left out: the client knows it under another name."""

MOVED_WITHIN_S = 120.0
"""Weights between GPU and host memory: seconds to a minute."""

NULL_BLOCKS = 1
"""vLLM's block pool keeps one block that no request ever gets."""


class Tokenized(msgspec.Struct):
    """The answer of /tokenize."""

    count: int


class TokenIds(msgspec.Struct):
    """The same, where the tokens themselves are wanted."""

    tokens: list[int]


class VllmServer(OpenaiServer):
    """KV in use, what runs and waits, preemptions, prefix hits, refusals; pool and context once."""

    kind = "vllm"
    look_every_s = 0.25
    """Rendering the page costs vLLM's API process some milliseconds of its event loop."""
    confirms_aborts = True
    abort_grace_s = 5.0
    """It was measured to abort within 0.3 s of the disconnect."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._pool_tokens: dict[str, int] = {}
        """By engine label."""

    async def read(self, now: float) -> Reading:
        """Part of ``Engine``."""
        reading = await self.read_health(now)
        if not reading.ready:
            return reading
        try:
            page = await self._page()
        except (OSError, TidegateError):
            # It is alive and does not tell: figures are missing, nothing is wrong with the engine (R6).
            return reading
        return self._reading(page, now)

    async def capacity(self) -> Capacity:
        """Part of ``Engine``. Most sequences beside each other (--max-num-seqs) vLLM does not tell."""
        page = await self._page()
        self._pool_tokens = pools(page)
        blocks = [int(size) for each in page.of(CACHE_CONFIG) if (size := each.labels.get("block_size", "")).isdigit()]
        lengths = [model.max_model_len for model in (await self.listed()).data if model.max_model_len]
        return Capacity(
            kv_tokens=sum(self._pool_tokens.values()) or None,
            slot_tokens=whole_blocks(Capacity().slot_tokens, max(blocks, default=1)),
            context_tokens=min(lengths, default=None),
        )

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """Part of ``Engine``."""
        if path == CHAT:
            chat = chat_fields(body, CHAT_FIELDS)
            return None if chat is None else (await self._count(chat),)
        prompts = completion_prompts(body) if path == COMPLETIONS else None
        if prompts is None:
            return None
        texts = iter(
            await asyncio.gather(*(self._count({"prompt": each}) for each in prompts if isinstance(each, str)))
        )
        return tuple(each if isinstance(each, int) else next(texts) for each in prompts)

    async def token_ids(self, text: str) -> list[int]:
        """Part of ``Engine``: as /v1/completions reads a prompt, with what its tokenizer adds."""
        return (await self.address.ask_for(TokenIds, "/tokenize", msgspec.json.encode({"prompt": text}))).tokens

    async def sleep(self) -> None:
        """Weights to host memory, KV dropped; its requests have to be over. Raises EngineError or OSError."""
        await self._order("/sleep?level=1")

    async def wake(self) -> None:
        """Back to work; no harm where it is awake. Raises EngineError or OSError."""
        await self._order("/wake_up")

    async def _order(self, path: str) -> None:
        reply = await self.address.ask(path, b"", timeout_s=MOVED_WITHIN_S)
        if reply.status != 200:
            raise EngineError(f"{self.address.url}{path} answered {self.address.describe(reply)}")

    async def _count(self, question: dict[str, object]) -> int:
        counted = await self.address.ask_for(Tokenized, "/tokenize", msgspec.json.encode(question))
        return counted.count

    async def _page(self) -> Samples:
        reply = await self.address.ask("/metrics")
        if reply.status != 200:
            raise EngineError(f"{self.address.url}/metrics answered {self.address.describe(reply)}")
        return Samples(reply.body, WANTED)

    def _reading(self, page: Samples, now: float) -> Reading:
        states = {sample.labels.get("sleep_state"): sample.value for sample in page.of(SLEEP_STATE)}
        is_asleep = states.get("awake") == 0
        return Reading(
            at=now,
            ready=not is_asleep,
            running=page.total(RUNNING),
            waiting=page.total(WAITING),
            kv_used_tokens=self._used_tokens(page),
            preemptions=page.total(PREEMPTIONS),
            prefix_asked_tokens=page.total(PREFIX_ASKED),
            prefix_found_tokens=page.total(PREFIX_FOUND),
            turned_away=page.total(TURNED_AWAY),
            error=f"{self.address.url} is asleep (vLLM sleep mode)" if is_asleep else "",
        )

    def _used_tokens(self, page: Samples) -> int | None:
        pool_tokens = pools(page) or self._pool_tokens
        shares = {sample.labels.get("engine", ""): sample.value for sample in page.of(USED_SHARE)}
        if not shares or not pool_tokens.keys() >= shares.keys():
            return None
        return round(sum(share * pool_tokens[engine] for engine, share in shares.items()))


def pools(page: Samples) -> dict[str, int]:
    """KV pool in tokens of each engine, by its label: (num_gpu_blocks - 1) × block_size."""
    found = {}
    for sample in page.of(CACHE_CONFIG):
        blocks, size = sample.labels.get("num_gpu_blocks", ""), sample.labels.get("block_size", "")
        if blocks.isdigit() and size.isdigit():
            found[sample.labels.get("engine", "")] = max(0, int(blocks) - NULL_BLOCKS) * int(size)
    return found


def whole_blocks(slot_tokens: int, block_tokens: int) -> int:
    """The largest multiple of a block that is no larger than a slot; one block at least."""
    return max(1, slot_tokens // block_tokens) * block_tokens
