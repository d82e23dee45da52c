"""One model's tokenizer, in a process where it may take its time."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from tidegate.engines.prompts import CHAT, COMPLETIONS
from tidegate.errors import ConfigError
from tidegate.gateway.chat_template import ChatTemplate, read_template
from tidegate.gateway.piece_cache import Piece, PieceCache
from tidegate.gateway.tokenizing_messages import Counted

FILE_NAME = "tokenizer.json"
SHORTEST_KEPT = 64
"""Characters of a piece below which finding it costs as much as tokenizing it."""
CHANGES_IDS = frozenset(
    {"echo", "suffix", "add_special_tokens", "truncate_prompt_tokens", "prompt_embeds", "input_prefix", "input_suffix"}
)
"""Fields of a completion request with which the engine needs the text itself, or makes other ids of it."""

_fields = msgspec.json.Decoder(dict[str, Any])


class Tokenizer:
    """What a ``tokenizer.json`` and the template beside it make of a request.

    Special tokens cut a text into pieces that do not know of each other, so the pieces of a conversation that came
    before are taken from ``cache``. A text without special tokens is one piece: nothing shorter is exact.
    """

    def __init__(self, path: str, cache: PieceCache) -> None:
        """``path``: the file, or its folder. Raises ConfigError for one that cannot be used."""
        file = Path(path).expanduser()
        file = file / FILE_NAME if file.is_dir() else file
        self._cache = cache
        self._path = str(file)
        self._tokenizer = _load(file)
        special = _cutting_tokens(json.loads(self._tokenizer.to_str()))
        self._special = {content: Piece(1, b"%d" % token) for content, token in special.items()}
        either = "|".join(re.escape(each) for each in _longest_first(special))
        self._cut = re.compile(f"({either})") if special else None
        self._template: ChatTemplate | None = read_template(file.parent)
        self._before, self._after = self._added()

    def count(self, path: str, body: bytes, wants_ids: bool) -> Counted:
        """Token numbers of each prompt of a request, and the ids of a single text prompt where they are wanted and
        mean the same to the engine. None where this cannot be told from here."""
        try:
            fields = _fields.decode(body)
        except msgspec.DecodeError:
            return Counted()
        if path == CHAT:
            rendered = None if self._template is None else self._template.render(fields)
            return Counted() if rendered is None else Counted((self._measured(rendered, False).tokens,))
        return self._count_completion(fields, wants_ids) if path == COMPLETIONS else Counted()

    def _count_completion(self, fields: dict[str, Any], wants_ids: bool) -> Counted:
        prompt = fields.get("prompt")
        if isinstance(prompt, str):
            wants_ids = wants_ids and CHANGES_IDS.isdisjoint(fields)
            piece = self._measured(prompt, wants_ids)
            return Counted((piece.tokens + self._added_tokens,), self._whole_prompt(piece))
        if not isinstance(prompt, list) or not prompt or not all(isinstance(each, str) for each in prompt):
            return Counted()
        return Counted(tuple(self._measured(each, False).tokens + self._added_tokens for each in prompt))

    def ids(self, text: str) -> list[int]:
        """Token ids of a completion prompt, with what the tokenizer itself puts around it."""
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=True).ids
        return found

    @property
    def _added_tokens(self) -> int:
        return len(self._before) + len(self._after)

    def _whole_prompt(self, piece: Piece) -> bytes | None:
        if piece.ids is None:
            return None
        return b"[%b]" % _joined(_listed(self._before), piece.ids, _listed(self._after))

    def _measured(self, text: str, wants_ids: bool) -> Piece:
        pieces = self._cut.split(text) if self._cut is not None else [text]
        known = [self._known(piece, wants_ids) for piece in pieces]
        missing = [piece for piece, found in zip(pieces, known, strict=True) if found is None]
        # This call, unlike the one for a single text, computes no offsets: a third less time.
        encodings = iter(self._tokenizer.encode_batch_fast(missing, add_special_tokens=False))
        tokens, ids = 0, []
        for piece, found in zip(pieces, known, strict=True):
            part = self._taken(piece, next(encodings), wants_ids) if found is None else found
            tokens += part.tokens
            ids.append(part.ids or b"")
        return Piece(tokens, _joined(*ids) if wants_ids else None)

    def _known(self, text: str, wants_ids: bool) -> Piece | None:
        if len(text) >= SHORTEST_KEPT:
            return self._cache.find(self._path + text, wants_ids)
        return self._special.get(text) if text else Piece(0, b"")

    def _taken(self, text: str, encoding: Any, wants_ids: bool) -> Piece:
        piece = Piece(len(encoding), _listed(encoding.ids) if wants_ids else None)
        if len(text) >= SHORTEST_KEPT:
            self._cache.keep(self._path + text, piece)
        return piece

    def _added(self) -> tuple[list[int], list[int]]:
        """Token ids that the tokenizer puts before and after every completion prompt."""
        bare, whole = self._tokenizer.encode("a", add_special_tokens=False).ids, self.ids("a")
        most = len(whole) - len(bare)
        for start in range(most + 1):
            if whole[start : start + len(bare)] == bare:
                return whole[:start], whole[start + len(bare) :]
        raise ConfigError([f"{self._path}: what it adds to a text does not stand around it"])


def _load(file: Path) -> Any:
    try:
        library: Any = importlib.import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise ConfigError([f"{error}: counting tokens here needs it: pip install 'tidegate[tokenizers]'"]) from error
    if not file.is_file():
        raise ConfigError([f"tokenizer {file}: there is no such file"])
    try:
        # The library raises plain Exception for whatever is wrong with a file.
        tokenizer = library.Tokenizer.from_file(str(file))
    except Exception as error:
        raise ConfigError([f"tokenizer {file}: {error}"]) from error
    # A file may say that prompts are cut or filled up to a length, which no engine does.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _cutting_tokens(described: dict[str, Any]) -> dict[str, int]:
    """Contents and ids of the special tokens at which a text can be cut without changing any id; none where a
    token takes neighbouring spaces along, or the first word of a text is treated unlike the others."""
    tokens = [each for each in described.get("added_tokens") or () if not each["normalized"]]
    takes_along = any(each["lstrip"] or each["rstrip"] or each["single_word"] for each in tokens)
    if takes_along or _minds_position(described.get("normalizer")) or _minds_position(described.get("pre_tokenizer")):
        return {}
    return {each["content"]: each["id"] for each in tokens}


def _minds_position(step: object) -> bool:
    if isinstance(step, list):
        return any(_minds_position(each) for each in step)
    if not isinstance(step, dict):
        return False
    prepends = step.get("prepend_scheme") not in (None, "never") or step.get("add_prefix_space") is True
    if prepends or step.get("type") in ("Prepend", "Strip"):
        return True
    return any(_minds_position(each) for each in step.values())


def _longest_first(special: dict[str, int]) -> list[str]:
    """Of two that begin alike the longer is meant, as the tokenizer has it."""
    return sorted(special, key=len, reverse=True)


def _listed(ids: list[int]) -> bytes:
    return msgspec.json.encode(ids)[1:-1]


def _joined(*parts: bytes) -> bytes:
    return b",".join(part for part in parts if part)
