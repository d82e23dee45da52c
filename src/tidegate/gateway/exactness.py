"""Whether our own tokenizers make of a text what the engines make of it: asked before they are relied on.

A tokenizer file can be the wrong one, of another version, or lack what the engine does before it tokenizes; nothing
but a comparison shows that. Counts of a file that was not compared yet (the engine cannot be asked, or is not up)
are believed until an engine's usage says otherwise; ids go only to replicas that were compared and found equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from tidegate.engines.prompts import CHAT
from tidegate.errors import EngineError, TidegateError
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.tokenizer_pool import Log, TokenizerPool
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Tokenize, Tokenized, Told, Unusable

PROBES = (
    "The quick brown fox jumps over the lazy dog. It doesn't, we've heard; THEY'LL see!",
    "0 10 200 3000 40000 3.14159 2026-11-29 1,234,567.89",
    "  two spaces\n\n\n\tand tabs\t\t \r\nreturns   and a trailing space ",
    "Füße, naïve, Ελληνικά, Привет, 漢字かな交じり文, 한국어, العربية, हिन्दी, ไทย",
    "🦆 👩\u200d👩\u200d👧\u200d👦 é e\u0301 ﬁ ½ \u00a0\u200b\ufeff",
    "def f(x: int) -> int:\n    return x ** 2  # <=> != //\n\n\n\nclass A:\n        pass\n",
    "<|im_start|>user\nhi<|im_end|>\n<s>[INST] x [/INST]</s><|endoftext|><|eot_id|><bos>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ________________ ................ ================",
)
"""Where tokenizers of one family are known to part: digits, runs of spaces, contractions, scripts, special tokens."""
CHAT_PROBE = msgspec.json.encode(
    {
        "messages": [
            {"role": "user", "content": "How many tokens are these? 123"},
            {"role": "assistant", "content": "Some."},
            {"role": "user", "content": " Thank you. 漢字 "},
        ]
    }
)
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Between tries to reach an engine, doubling."""


class Counter(Protocol):
    """An engine adapter, as far as counting needs one."""

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """None: it does not count. Raises TidegateError or OSError."""

    async def token_ids(self, text: str) -> list[int] | None:
        """None: it does not tell. Raises TidegateError or OSError."""


@dataclass(slots=True)
class Verdict:
    """About one tokenizer at one replica; None: nobody can tell."""

    ids: bool | None = None
    """A completion prompt has the same ids."""
    chat: bool | None = None
    """A chat has as many tokens."""


class Exactness:
    """Verdicts by replica."""

    def __init__(self, pool: TokenizerPool, counter_of: Callable[[Endpoint], Counter], log: Log):
        self._pool = pool
        self._counter_of = counter_of
        self._log = log
        self._verdicts: dict[Endpoint, Verdict] = {}
        self._tasks: dict[Endpoint, asyncio.Task[None]] = {}
        self._doubted: set[tuple[str, str]] = set()
        """Upstream and path of which usage has contradicted a count."""
        self.id_exact: set[str] = set()
        """Replicas that get ids."""

    def serve(self, endpoints: list[Endpoint]) -> None:
        """Compare at these, as soon as they can be asked; others are forgotten."""
        for gone in self._tasks.keys() - set(endpoints):
            self._tasks.pop(gone).cancel()
        self._verdicts = {each: self._verdicts[each] for each in endpoints if each in self._verdicts}
        self._doubted.clear()
        for endpoint in endpoints:
            if endpoint not in self._tasks:
                self._begin(endpoint)
        self._admit()

    def look_again(self, replica: str) -> None:
        """It was away, and may have come back with another model."""
        for endpoint, task in tuple(self._tasks.items()):
            if endpoint.name == replica:
                task.cancel()
                self.id_exact.discard(replica)
                self._begin(endpoint)

    def is_trusted(self, upstream: str, path: str, endpoints: list[Endpoint]) -> bool:
        """Nothing speaks against the counts of an upstream's tokenizer."""
        if (upstream, path) in self._doubted:
            return False
        verdicts = [self._verdicts[each] for each in endpoints if each in self._verdicts]
        return all((each.chat if path == CHAT else each.ids) is not False for each in verdicts)

    def contradicted(self, upstream: str, path: str, counted: int, used: int) -> None:
        """An engine charged for ``used`` tokens where ``counted`` were counted here."""
        if (upstream, path) not in self._doubted:
            self._doubted.add((upstream, path))
            self._log(
                "error",
                f"tokenizer of upstream {upstream}: it counted {counted} tokens in a request to {path} for which the "
                f"engine reports {used}; its counts there are not used until the configuration is loaded anew",
            )

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    # ---- comparing --------------------------------------------------------------------------

    def _begin(self, endpoint: Endpoint) -> None:
        self._tasks[endpoint] = asyncio.get_running_loop().create_task(self._compare(endpoint))

    async def _compare(self, endpoint: Endpoint) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            verdict = None
            try:
                verdict = await self._verdict(endpoint)
            except (OSError, TidegateError) as error:
                if pause_s == FIRST_PAUSE_S:
                    where = f"tokenizer {endpoint.tokenizer} at replica {endpoint.name}"
                    self._log("warning", f"{where}: not compared yet, and tried again: {error}")
            if verdict is not None:
                self._verdicts[endpoint] = verdict
                self._admit()
                return
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _verdict(self, endpoint: Endpoint) -> Verdict | None:
        """None: our own side did not answer, so that it has to be asked again."""
        where = f"tokenizer {endpoint.tokenizer} at replica {endpoint.name}"
        counter = self._counter_of(endpoint)
        verdict = Verdict()
        for text in PROBES:
            told = await self._ask(Tokenize(endpoint.tokenizer or "", text))
            if isinstance(told, Unusable):
                self._log("error", f"{where}: {told.problem}; prompts are counted by the engine, or estimated")
                return Verdict(False, False)
            if not isinstance(told, Tokenized):
                return None
            theirs = await counter.token_ids(text)
            if theirs is None:
                self._log("warning", f"{where}: this engine cannot be asked for token ids, so none are sent to it")
                return verdict
            verdict.ids = told.ids == theirs
            if not verdict.ids:
                self._log("error", _difference(where, text, told.ids, theirs))
                break
        verdict.chat = await self._is_chat_equal(endpoint, counter, where)
        if verdict.ids:
            self._log("info", f"{where}: token ids are those of the engine in {len(PROBES)} probes")
        return verdict

    async def _is_chat_equal(self, endpoint: Endpoint, counter: Counter, where: str) -> bool | None:
        told = await self._ask(Count(endpoint.tokenizer or "", CHAT, CHAT_PROBE))
        try:
            theirs = await counter.count_tokens(CHAT, CHAT_PROBE)
        except EngineError:
            # It answered, and takes no chats: a model without a template.
            return None
        if not isinstance(told, Counted) or told.tokens is None or theirs is None:
            return None
        if told.tokens != theirs:
            self._log(
                "error",
                f"{where}: its chat template makes {told.tokens[0]} tokens of a chat of which the engine makes "
                f"{theirs[0]}; chats are counted by the engine",
            )
        return told.tokens == theirs

    async def _ask(self, question: Question) -> Told | None:
        answer = self._pool.ask(question, 0)
        return None if answer is None else await answer

    def _admit(self) -> None:
        verdicts = self._verdicts.items()
        equal = {each.name for each, verdict in verdicts if verdict.ids and each.takes_token_ids}
        # In place: requests that are on their way look at this very set.
        self.id_exact &= equal
        self.id_exact |= equal


def _difference(where: str, text: str, ours: list[int], theirs: list[int]) -> str:
    at = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    return (
        f"{where}: it is not the engine's: {text!r} has {len(ours)} tokens here and {len(theirs)} there, unlike from "
        f"number {at} on ({ours[at : at + 3]} and {theirs[at : at + 3]}). No token ids are sent to this replica, and "
        f"its completions are counted by the engine; give the tokenizer.json that the engine's model came with"
    )
