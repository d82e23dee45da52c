"""The real process with the real library: asked, and gone when it is to go. On real time, within a second or two."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from pathlib import Path

import msgspec
import pytest

from tests.gateway.made_tokenizer import TEXTS, make_tokenizer
from tidegate.gateway.channel import LENGTH_BYTES
from tidegate.gateway.tokenizer_pool import TokenizerPool
from tidegate.gateway.tokenizer_process import Owner, Seat, TokenizerProcess
from tidegate.gateway.tokenizing import NICENESS, Desk, serve
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Tokenize, Tokenized, Told, Unusable

COMPLETIONS = "/v1/completions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def body(prompt: str) -> bytes:
    return json.dumps({"prompt": prompt}).encode()


def test_a_process_of_its_own_counts_with_little_weight_and_ends_with_the_pool(folder: Path) -> None:
    made: list[TokenizerProcess] = []

    async def spawn(owner: Owner) -> Seat:
        made.append(await TokenizerProcess.spawn(owner))
        return made[-1]

    async def main() -> None:
        pool = TokenizerPool(spawn, 1)
        large = body(TEXTS[0] * 8000)
        answer = pool.ask(Count(str(folder), COMPLETIONS, large, True), len(large))
        assert answer is not None
        told = await answer
        assert isinstance(told, Counted)
        assert told.tokens == (len(json.loads(told.prompt_ids or b"")),)
        assert os.getpriority(os.PRIO_PROCESS, made[0].pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
        pool.close()
        async with asyncio.timeout(10):
            assert await made[0].ended() == -signal.SIGKILL

    asyncio.run(main())


def test_a_killed_process_leaves_its_question_unanswered(folder: Path) -> None:
    made: list[TokenizerProcess] = []

    async def spawn(owner: Owner) -> Seat:
        made.append(await TokenizerProcess.spawn(owner))
        made[0].kill()
        return made[0]

    async def main() -> None:
        pool = TokenizerPool(spawn, 1)
        answer = pool.ask(Tokenize(str(folder), "x"), 1)
        assert answer is not None
        assert await answer is None
        assert await made[0].ended() == -signal.SIGKILL

    asyncio.run(main())


class Line:
    """The other end of a served connection, in this process."""

    def __init__(self) -> None:
        self.sock, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=serve, args=(self._theirs,))
        self._thread.start()

    def ask(self, question: Question) -> Told:
        frame = msgspec.msgpack.encode(question)
        # In two parts, as a large frame arrives.
        whole = len(frame).to_bytes(LENGTH_BYTES) + frame
        self.sock.sendall(whole[:7])
        self.sock.sendall(whole[7:])
        size = int.from_bytes(self.sock.recv(LENGTH_BYTES, socket.MSG_WAITALL))
        told: Told = msgspec.msgpack.decode(self.sock.recv(size, socket.MSG_WAITALL), type=Told)
        return told

    def end(self) -> None:
        self.sock.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._theirs.close()


def test_questions_are_answered_in_turn_until_the_connection_ends(folder: Path) -> None:
    line = Line()
    told = line.ask(Tokenize(str(folder), TEXTS[1]))
    assert isinstance(told, Tokenized)
    assert line.ask(Count(str(folder), COMPLETIONS, body(TEXTS[1]))) == Counted((len(told.ids),))
    line.end()


def test_a_tokenizer_that_cannot_be_used_is_an_answer(tmp_path: Path) -> None:
    told = Desk().answer(Tokenize(str(tmp_path / "none"), "x"))
    assert isinstance(told, Unusable)
    assert "there is no such file" in told.problem


def test_an_asker_that_left_ends_it(folder: Path) -> None:
    ours, theirs = socket.socketpair()
    frame = msgspec.msgpack.encode(Tokenize(str(folder), "x"))
    ours.sendall(len(frame).to_bytes(LENGTH_BYTES) + frame)
    ours.close()
    serve(theirs)
    assert theirs.fileno() >= 0
    theirs.close()


def test_a_connection_that_is_reset_in_the_middle_ends_it_too() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall((100).to_bytes(LENGTH_BYTES) + b"half")
    ours.close()
    serve(theirs)
    theirs.close()
    serve(theirs)
    assert theirs.fileno() == -1
