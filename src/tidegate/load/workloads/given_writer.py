"""Requests whose prompts a file gives."""

from __future__ import annotations

from random import Random

from tidegate.load.ask import Ask
from tidegate.load.workloads.ask_writer import JSON_ANSWER, chat_body
from tidegate.load.workloads.filler import nonce
from tidegate.load.workloads.given_prompts import GivenPrompts
from tidegate.load.workloads.recipe import Nonce, Recipe


class GivenWriter:
    """In an order drawn anew for each lap, so that each prompt comes as often as the others.

    Their lengths are not known, so nothing is cut: what does not fit is the target's to refuse.
    """

    def __init__(self, recipe: Recipe, given: GivenPrompts, rng: Random, salt: int) -> None:
        self._recipe = recipe
        self._prompts = given.prompts
        self._rng = rng
        self._salt = salt
        self._order: list[int] = []
        self._more = (JSON_ANSWER if recipe.wants_json else "") + recipe.more

    def ask(self, index: int, due_s: float) -> Ask:
        recipe = self._recipe
        if not self._order:
            self._order = self._rng.sample(range(len(self._prompts)), len(self._prompts))
        prompt = self._prompts[self._order.pop()]
        output = recipe.bounded(recipe.output.draw(self._rng) if prompt.max_tokens is None else prompt.max_tokens)
        is_stream = recipe.stream_share >= 1.0 or self._rng.random() < recipe.stream_share
        words = nonce(self._salt, index)
        before = f"{words} " if recipe.nonce is Nonce.START else ""
        behind = f" {words}" if recipe.nonce is Nonce.END else ""
        return Ask(
            index=index,
            due_s=due_s,
            label=prompt.label or recipe.label,
            body=chat_body(prompt.written(before, behind), output, is_stream, self._more),
            headers=recipe.headers,
            tenant=recipe.tenant,
            is_stream=is_stream,
            max_tokens=output,
            refusal=recipe.refusal,
            patience_s=recipe.patience_s,
            keeps_text=recipe.keeps_text,
            wants_json=recipe.wants_json,
        )
