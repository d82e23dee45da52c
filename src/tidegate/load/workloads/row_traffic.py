"""Requests of traffic that is known beforehand: its times and lengths, and words of our own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from tidegate.load.ask import Ask
from tidegate.load.workloads.abnormal_corpus import cases_by_code
from tidegate.load.workloads.ask_writer import SESSION_HEADER, chat_body, message
from tidegate.load.workloads.blend import SALT_BITS
from tidegate.load.workloads.filler import NONCE_WORDS, Filler, nonce
from tidegate.load.workloads.overlong import REFUSAL
from tidegate.load.workloads.recipe import Nonce, Recipe
from tidegate.load.workloads.traffic_row import TrafficRow
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import BLOCK_TOKENS

_SPREAD = 0x9E3779B97F4A7C15
"""Odd: takes neighbouring ids far apart in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTraffic:
    """``recipe`` holds what is the same for all: bounds, nonce, share of streams, headers. A nonce at the start stands
    at the end of prompts that share their beginning with others."""

    name: str
    source: str
    """Where the rows come from, in words."""
    rows: tuple[TrafficRow, ...]
    recipe: Recipe
    is_endless: bool = False
    """For a closed loop: round and round."""
    salt: str = ""

    @property
    def title(self) -> str:
        return f"{len(self.rows)} requests of {self.source}"

    def salted(self, salt: str) -> RowTraffic:
        return replace(self, salt=salt)

    def asks(self, seed: int) -> Iterator[Ask]:
        purpose = f"load/{self.name}"
        salt = stream(seed, f"{purpose}/salts{self.salt}").getrandbits(SALT_BITS)
        writer = _RowWriter(
            self.recipe, Filler(stream(seed, f"{purpose}/words")), stream(seed, f"{purpose}/rows"), salt
        )
        for index in count() if self.is_endless else range(len(self.rows)):
            yield writer.ask(index, self.rows[index % len(self.rows)])


class _RowWriter:
    def __init__(self, recipe: Recipe, filler: Filler, rng: Random, salt: int) -> None:
        self._recipe = recipe
        self._filler = filler
        self._rng = rng
        self._salt = salt
        self._starts: dict[str, int] = {}
        """By session: where its words begin."""
        self._cases = cases_by_code()

    def ask(self, index: int, row: TrafficRow) -> Ask:
        case = self._cases.get(row.code)
        recipe, rng = self._recipe, self._rng
        output = recipe.bounded(row.output_tokens)
        longest = None if row.code else recipe.longest_prompt(output)
        tokens = row.prompt_tokens if longest is None else min(row.prompt_tokens, longest)
        is_stream = recipe.stream_share >= 1.0 or rng.random() < recipe.stream_share
        session = self._session(row.session)
        is_overlong = bool(row.code) and case is None
        return Ask(
            index=index,
            due_s=row.at_s,
            label=row.label,
            body=chat_body(self._message(index, row, tokens), output, is_stream, recipe.more)
            if case is None
            else case.body,
            headers=(*((SESSION_HEADER, session),) * bool(session), *row.headers, *recipe.headers),
            tenant=row.tenant,
            session=session,
            is_stream=is_stream if case is None else case.is_stream,
            prompt_tokens=tokens,
            max_tokens=output,
            refusal=REFUSAL if is_overlong else None if case is None else case.refusal,
            patience_s=row.patience_s,
        )

    def _session(self, name: str) -> str:
        """A name of our own in its place: those of a log are nobody's business."""
        if not name:
            return ""
        if name not in self._starts:
            self._starts[name] = self._rng.getrandbits(30)
        return f"{self._salt:09x}-{self._starts[name]:08x}"

    def _message(self, index: int, row: TrafficRow, tokens: int) -> str:
        unique = "" if self._recipe.nonce is Nonce.NONE else nonce(self._salt, index)
        wanted = max(1, tokens - (NONCE_WORDS if unique else 0))
        shared = row.blocks[: wanted // BLOCK_TOKENS]
        parts = [self._filler.words(block * _SPREAD >> 7, BLOCK_TOKENS) for block in shared]
        start = self._starts[row.session] if row.session else self._rng.getrandbits(30)
        parts.append(self._filler.words(start, wanted - len(shared) * BLOCK_TOKENS))
        is_alike = bool(row.session or shared)
        parts.insert(0 if self._recipe.nonce is Nonce.START and not is_alike else len(parts), unique)
        return message("user", " ".join(part for part in parts if part))
