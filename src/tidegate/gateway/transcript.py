"""What a client has seen of a streamed answer, so that another replica can go on with it."""

from __future__ import annotations

from array import array

import msgspec

from tidegate.wire.chunks import DONE, Choice, Chunk, chunk_of, data_of, events_in

MOST_RAW_BYTES = 64 * 1024
"""Of events that nobody has read yet. Above it they are read, which takes about a millisecond, and their text stays."""
MOST_TEXT_BYTES = 64 * 1024
"""Of text and token ids. An answer that is longer than this is not continued: sixteen thousand tokens and more."""
ID_BYTES = 4
MORE_THAN_TEXT = "there is more than text in it: reasoning, or a call of a tool"


class Transcript:
    """Takes events as they go out. They are kept as they are and read when somebody asks, which for most streams
    is never: one reference a read is all that it costs them."""

    __slots__ = (
        "_kept_bytes",
        "_parts",
        "_raw",
        "_raw_bytes",
        "_unseen_ids",
        "created",
        "has_role",
        "id",
        "is_finished",
        "model",
        "problem",
        "prompt_ids",
        "token_ids",
        "tokens",
    )

    def __init__(self) -> None:
        self._raw: list[bytes] = []
        self._raw_bytes = 0
        self._parts: list[str] = []
        self._kept_bytes = 0
        self.id: str | None = None
        """With ``created`` and ``model``: what all chunks of one answer have in common."""
        self.created: int | None = None
        self.model: str | None = None
        self.has_role = False
        self.tokens = 0
        """Chunks with text, which is tokens where the engine sends each in a chunk of its own; where it tells ids,
        exactly these."""
        self.token_ids = array("I")
        """Of the text that was seen; empty where the engine tells none."""
        self._unseen_ids: list[int] = []
        """Of tokens whose text has not come yet: a part of a character, or what may be the beginning of a stop."""
        self.prompt_ids: array[int] | None = None
        self.is_finished = False
        """The engine has said why the answer ends."""
        self.problem = ""
        """Why nobody can go on with this answer."""

    @property
    def text(self) -> str:
        """All that was seen; up to date after ``read``."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def take(self, events: bytes) -> None:
        """Complete events that go to the client."""
        if self.problem:
            return
        self._raw.append(events)
        self._raw_bytes += len(events)
        if self._raw_bytes > MOST_RAW_BYTES:
            self.read()

    def read(self) -> None:
        """Make text of what was taken."""
        raw, self._raw, self._raw_bytes = self._raw, [], 0
        try:
            for event in events_in(b"".join(raw)):
                data = data_of(event)
                if data is not None and data != DONE:
                    self._take(chunk_of(data))
        except msgspec.DecodeError as error:
            self.problem = f"an event of the stream is no chunk of an answer: {error}"
        if self._kept_bytes > MOST_TEXT_BYTES:
            self.problem = self.problem or f"more than {MOST_TEXT_BYTES >> 10} KiB of it are written already"
        if self.problem:
            self.give_up(self.problem)

    def give_up(self, problem: str) -> None:
        """Keep nothing more: nobody can go on with this answer."""
        self.problem = problem
        self._raw, self._parts, self.token_ids, self._unseen_ids = [], [], array("I"), []

    def forget_unseen(self) -> None:
        """The stream is cut: whoever goes on writes again what nobody has seen."""
        self._unseen_ids = []

    def _take(self, chunk: Chunk) -> None:
        if self.id is None:
            self.id, self.created, self.model = chunk.id, chunk.created, chunk.model
        if chunk.prompt_token_ids is not None:
            self._take_prompt(chunk.prompt_token_ids)
        for choice in chunk.choices:
            self._take_choice(choice)

    def _take_choice(self, choice: Choice) -> None:
        delta, text = choice.delta, choice.text
        if delta is not None:
            text = delta.content
            if delta.role is not None:
                self.has_role = True
            if delta.has_more_than_text:
                self.problem = MORE_THAN_TEXT
        if choice.token_ids is not None:
            self._unseen_ids += choice.token_ids
        if choice.prompt_token_ids is not None:
            self._take_prompt(choice.prompt_token_ids)
        if text:
            self._keep(text)
        if choice.finish_reason is not None:
            self.is_finished = True
        if choice.index:
            self.problem = "there are several answers in it"

    def _take_prompt(self, ids: list[int]) -> None:
        """What another replica tells of its prompt has the answer's beginning in it."""
        if self.prompt_ids is None:
            self.prompt_ids = array("I", ids)

    def _keep(self, text: str) -> None:
        self._parts.append(text)
        self._kept_bytes += len(text) if text.isascii() else len(text.encode(errors="replace"))
        ids = self._unseen_ids
        if not ids:
            self.tokens += 1
            return
        self.token_ids.extend(ids)
        self.tokens += len(ids)
        self._kept_bytes += ID_BYTES * len(ids)
        self._unseen_ids = []
