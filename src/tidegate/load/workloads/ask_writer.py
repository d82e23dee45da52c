"""Requests of one kind, one after the other."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from random import Random

from tidegate.load.ask import Ask
from tidegate.load.workloads.filler import NONCE_WORDS, Filler, nonce
from tidegate.load.workloads.recipe import Conversation, Nonce, Recipe
from tidegate.wire.header_names import SESSION

SESSION_HEADER = SESSION.decode()
STREAM = ',"temperature":0,"stream":true,"stream_options":{"include_usage":true}'
WHOLE = ',"temperature":0,"stream":false'
LONGEST_PREFIX = 1 << 24
"""Where nothing bounds a prompt."""
JSON_ANSWER = ',"response_format":{"type":"json_object"}'


def escaped(text: str) -> str:
    """As it stands in a JSON string."""
    return json.dumps(text)[1:-1]


def message(role: str, content: str) -> str:
    """``content`` stands in JSON as it is."""
    return f'{{"role":"{role}","content":"{content}"}}'


def chat_body(written: str, output_tokens: int, is_stream: bool, more: str) -> bytes:
    """``written``: the messages, with commas between them."""
    tail = STREAM if is_stream else WHOLE
    return f',"messages":[{written}],"max_tokens":{output_tokens}{tail}{more}}}'.encode()


@dataclass(slots=True)
class _Session:
    name: str
    turns_left: int
    written: str
    """All messages so far."""
    tokens: int


class AskWriter:
    """``salt``: 36 random bits, others for each phase and seed."""

    def __init__(self, recipe: Recipe, filler: Filler, rng: Random, salt: int) -> None:
        self._recipe = recipe
        self._filler = filler
        self._rng = rng
        self._salt = salt
        self._sessions: deque[_Session] = deque()
        self._begun = 0
        self._text = escaped(recipe.text)
        self._more = (JSON_ANSWER if recipe.wants_json else "") + recipe.more

    def ask(self, index: int, due_s: float) -> Ask:
        recipe, rng = self._recipe, self._rng
        output = recipe.bounded(recipe.output.draw(rng))
        session = None
        if recipe.conversation is None:
            written, tokens = self._opening(index, recipe.prompt.draw(rng), recipe.longest_prompt(output))
        else:
            session = self._turn(recipe.conversation, index, output)
            written, tokens = session.written, session.tokens
        is_stream = recipe.stream_share >= 1.0 or rng.random() < recipe.stream_share
        asked = Ask(
            index=index,
            due_s=due_s,
            label=recipe.label,
            body=chat_body(written, output, is_stream, self._more),
            headers=recipe.headers if session is None else ((SESSION_HEADER, session.name), *recipe.headers),
            tenant=recipe.tenant,
            session="" if session is None else session.name,
            is_stream=is_stream,
            prompt_tokens=tokens,
            max_tokens=output,
            refusal=recipe.refusal,
            patience_s=recipe.patience_s,
            keeps_text=recipe.keeps_text,
            wants_json=recipe.wants_json,
        )
        if session is not None:
            self._answered(session, output)
        return asked

    def _opening(self, index: int, new: int, longest: int | None) -> tuple[str, int]:
        """The first messages of a session, or all there are, with ``new`` tokens beside the prefix; and their length.

        What is too long loses of its own words first, then of the prefix.
        """
        recipe = self._recipe
        unique = "" if recipe.nonce is Nonce.NONE else nonce(self._salt, index)
        taken = NONCE_WORDS if unique else 0
        longest = new + LONGEST_PREFIX if longest is None else longest
        system, system_tokens = self._system(longest - taken - 1)
        new = max(taken + 1, min(new, longest - system_tokens))
        words = self._text or self._words(new - taken)
        first, last = (unique, "") if recipe.nonce is Nonce.START else ("", unique)
        if system:
            system, first = _joined(first, system), ""
        user = message("user", _joined(first, words, last))
        return f"{message('system', system)},{user}" if system else user, system_tokens + new

    def _system(self, room: int) -> tuple[str, int]:
        """One of the shared prefixes, or none; and its length."""
        prefix = self._recipe.prefix
        if prefix is None or room < 1 or (prefix.share < 1.0 and self._rng.random() >= prefix.share):
            return "", 0
        # They lie apart in the text, each at the same place for all requests.
        place = self._rng.randrange(prefix.count) * (prefix.tokens + 1)
        tokens = min(prefix.tokens, room)
        return self._filler.words(place, tokens), tokens

    def _words(self, count: int) -> str:
        return self._filler.words(0 if self._recipe.is_same else self._rng.getrandbits(30), count)

    def _turn(self, conversation: Conversation, index: int, output: int) -> _Session:
        """The session whose turn it is, with the new message in it. One that would grow too long gives way."""
        new = self._recipe.prompt.draw(self._rng)
        longest = self._recipe.longest_prompt(output)
        if len(self._sessions) >= conversation.open_sessions:
            session = self._sessions.popleft()
            if longest is None or session.tokens + new <= longest:
                start = self._rng.getrandbits(30)
                session.written += f",{message('user', self._filler.words(start, new))}"
                session.tokens += new
                return session
        written, tokens = self._opening(index, new, longest)
        self._begun += 1
        turns = max(1, conversation.turns.draw(self._rng))
        return _Session(f"{self._salt:09x}-{self._recipe.label}-{self._begun}", turns, written, tokens)

    def _answered(self, session: _Session, output: int) -> None:
        """As far as is known before: of the length that was asked for."""
        session.turns_left -= 1
        if session.turns_left > 0:
            answer = self._filler.words(self._rng.getrandbits(30), output)
            session.written += f",{message('assistant', answer)}"
            session.tokens += output
            self._sessions.append(session)


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
