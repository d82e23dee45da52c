"""A tokenizer process: ``python -m tidegate.gateway.tokenizing FD``, where FD is its end of a socket pair.

Started by the data process (``tokenizer_process.py``) and ended by it, or by the end of the connection. It answers
one question after the other; whoever asks gives up or kills it when that takes too long.
"""

from __future__ import annotations

import os
import socket
import sys

import msgspec

from tidegate.errors import ConfigError
from tidegate.gateway.channel import LENGTH_BYTES
from tidegate.gateway.piece_cache import PieceCache
from tidegate.gateway.tokenizer import Tokenizer
from tidegate.gateway.tokenizing_messages import Count, Question, Tokenize, Tokenized, Told, Unusable

NICENESS = 10
"""A tenth of the weight of the data process beside it: enough to count while the machine is busy, and a request
that nobody counts loses its turn of the processor to it only rarely."""

_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)


class Desk:
    """Tokenizers by path, loaded when they are first asked for; all share one cache."""

    def __init__(self) -> None:
        self._cache = PieceCache()
        self._tokenizers: dict[str, Tokenizer] = {}

    def answer(self, question: Question) -> Told:
        try:
            if question.tokenizer not in self._tokenizers:
                self._tokenizers[question.tokenizer] = Tokenizer(question.tokenizer, self._cache)
            tokenizer = self._tokenizers[question.tokenizer]
        except (ConfigError, OSError) as error:
            return Unusable(str(error))
        match question:
            case Count(_, path, body, wants_ids):
                return tokenizer.count(path, body, wants_ids)
            case Tokenize(_, text):
                return Tokenized(tokenizer.ids(text))


def serve(sock: socket.socket) -> None:
    """Answer until the other end closes."""
    desk = Desk()
    while (frame := _read_frame(sock)) is not None:
        body = msgspec.msgpack.encode(desk.answer(_question.decode(frame)))
        try:
            sock.sendall(len(body).to_bytes(LENGTH_BYTES) + body)
        except OSError:
            return


def _read_frame(sock: socket.socket) -> bytearray | None:
    head = _read(sock, LENGTH_BYTES)
    return None if head is None else _read(sock, int.from_bytes(head))


def _read(sock: socket.socket, size: int) -> bytearray | None:
    """Exactly ``size`` bytes; None at the end of the connection."""
    whole, filled = bytearray(size), 0
    view = memoryview(whole)
    while filled < size:
        try:
            count = sock.recv_into(view[filled:])
        except OSError:
            return None
        if count == 0:
            return None
        filled += count
    return whole


def main(channel_fd: int) -> None:
    os.nice(NICENESS)
    # The library would take a thread for every core, for texts that come one at a time.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with socket.socket(fileno=channel_fd) as sock:
        serve(sock)


if __name__ == "__main__":
    main(int(sys.argv[1]))
