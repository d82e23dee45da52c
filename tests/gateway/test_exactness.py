"""A tokenizer is compared with the engine's before ids are sent, and an engine's usage has the last word. Virtual."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from tests.gateway.fake_tokenizers import FakeSpawn, one_a_byte
from tidegate.errors import EngineError
from tidegate.gateway.exactness import CHAT_PROBE, PROBES, Exactness
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.tokenizer_pool import TokenizerPool
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Tokenize, Told, Unusable
from tidegate.testing.virtual_loop import run_virtually

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ENDPOINT = Endpoint(name="r1", host="h", port=1, kind="vllm", tokenizer="t", takes_token_ids=True)


@dataclass
class Server:
    """An engine whose tokens are bytes, from number ``differs_from`` of the probes on with one more."""

    differs_from: int = len(PROBES)
    more_in_chats: int = 0
    refuses: int = 0
    """So many calls before it answers."""
    tells: bool = True
    chats: bool = True
    asked: int = 0

    async def token_ids(self, text: str) -> list[int] | None:
        self.asked += 1
        if self.asked <= self.refuses:
            raise EngineError("503, loading")
        if not self.tells:
            return None
        return list(text.encode()) + [0] * (PROBES.index(text) >= self.differs_from)

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        if not self.chats:
            raise EngineError("400, no chat template")
        return (len(body) + self.more_in_chats,)


class Bench:
    """One comparison under way."""

    def __init__(self, server: Server, answer: FakeSpawn | None = None) -> None:
        self.logged: list[str] = []
        self.spawn = answer or FakeSpawn()
        self.exactness = Exactness(TokenizerPool(self.spawn, 1), lambda _: server, self._log)

    def _log(self, level: str, text: str) -> None:
        self.logged.append(f"{level}: {text}")

    def trusts(self, path: str) -> bool:
        return self.exactness.is_trusted("m", path, [ENDPOINT])

    async def compare(self, *endpoints: Endpoint, within_s: float = 1.0) -> None:
        self.exactness.serve(list(endpoints or [ENDPOINT]))
        await asyncio.sleep(within_s)


def test_ids_go_where_every_probe_was_equal() -> None:
    async def main() -> None:
        bench = Bench(Server())
        assert bench.exactness.id_exact == set()
        await bench.compare()
        assert bench.exactness.id_exact == {"r1"}
        assert (bench.trusts(CHAT), bench.trusts(COMPLETIONS)) == (True, True)
        assert [line.split(":")[0] for line in bench.logged] == ["info"]

    run_virtually(main())


@pytest.mark.parametrize("number", range(len(PROBES)))
def test_one_probe_that_differs_keeps_ids_and_counts_back_and_is_told(number: int) -> None:
    async def main() -> None:
        bench = Bench(Server(differs_from=number))
        await bench.compare()
        assert bench.exactness.id_exact == set()
        assert (bench.trusts(CHAT), bench.trusts(COMPLETIONS)) == (True, False)
        (line,) = bench.logged
        assert line.startswith("error: tokenizer t at replica r1: it is not the engine's")
        size = len(PROBES[number].encode())
        assert f"{size} tokens here and {size + 1} there, unlike from number {size} on" in line

    run_virtually(main())


def test_a_template_that_differs_costs_the_counts_of_chats_only() -> None:
    async def main() -> None:
        bench = Bench(Server(more_in_chats=2))
        await bench.compare()
        assert bench.exactness.id_exact == {"r1"}
        assert (bench.trusts(CHAT), bench.trusts(COMPLETIONS)) == (False, True)
        size = len(CHAT_PROBE)
        assert f"makes {size} tokens of a chat of which the engine makes {size + 2}" in bench.logged[0]

    run_virtually(main())


def test_without_a_template_chats_are_not_compared() -> None:
    async def main() -> None:
        def no_chat(question: Question) -> Told:
            return Counted() if isinstance(question, Count) else one_a_byte(question)

        bench = Bench(Server(more_in_chats=2), FakeSpawn(no_chat))
        await bench.compare()
        assert bench.trusts(CHAT)

    run_virtually(main())


def test_an_engine_that_takes_no_chats_gets_ids_all_the_same() -> None:
    async def main() -> None:
        bench = Bench(Server(chats=False))
        await bench.compare()
        assert bench.exactness.id_exact == {"r1"}

    run_virtually(main())


def test_an_engine_that_is_not_up_yet_is_asked_again_and_told_of_once() -> None:
    async def main() -> None:
        bench = Bench(Server(refuses=3))
        await bench.compare()
        assert (bench.exactness.id_exact, bench.trusts(COMPLETIONS)) == (set(), True)
        await asyncio.sleep(10)
        assert bench.exactness.id_exact == {"r1"}
        assert [line for line in bench.logged if line.startswith("warning")] == [
            "warning: tokenizer t at replica r1: not compared yet, and tried again: 503, loading"
        ]

    run_virtually(main())


def test_an_engine_that_does_not_tell_ids_gets_none_and_is_believed_to_count_alike() -> None:
    async def main() -> None:
        bench = Bench(Server(tells=False))
        await bench.compare()
        assert (bench.exactness.id_exact, bench.trusts(COMPLETIONS)) == (set(), True)
        assert "cannot be asked for token ids" in bench.logged[0]

    run_virtually(main())


def test_a_tokenizer_that_cannot_be_used_is_told_and_not_asked_again() -> None:
    async def main() -> None:
        bench = Bench(Server(), FakeSpawn(lambda _: Unusable("no such file")))
        await bench.compare(within_s=100.0)
        assert (bench.trusts(CHAT), bench.trusts(COMPLETIONS)) == (False, False)
        assert bench.logged == [
            "error: tokenizer t at replica r1: no such file; prompts are counted by the engine, or estimated"
        ]

    run_virtually(main())


def test_a_tokenizer_process_that_dies_is_asked_again() -> None:
    async def main() -> None:
        spawn = FakeSpawn(lambda _: None)
        bench = Bench(Server(), spawn)
        await bench.compare()
        assert bench.exactness.id_exact == set()
        spawn.answer = one_a_byte
        await asyncio.sleep(10)
        assert bench.exactness.id_exact == {"r1"}

    run_virtually(main())


def test_ids_go_only_where_they_are_asked_for_and_not_to_those_that_are_gone() -> None:
    async def main() -> None:
        bench = Bench(Server())
        plain = replace(ENDPOINT, name="r2", takes_token_ids=False)
        await bench.compare(ENDPOINT, plain)
        on_its_way = bench.exactness.id_exact
        assert on_its_way == {"r1"}
        await bench.compare(plain)
        assert on_its_way == set()
        await bench.compare(ENDPOINT, plain)
        assert on_its_way == {"r1"}

    run_virtually(main())


def test_a_replica_that_was_away_is_compared_anew_before_it_gets_ids_again() -> None:
    async def main() -> None:
        server = Server()
        bench = Bench(server)
        await bench.compare()
        server.differs_from = 0
        bench.exactness.look_again("another")
        assert bench.exactness.id_exact == {"r1"}
        bench.exactness.look_again("r1")
        assert bench.exactness.id_exact == set()
        await asyncio.sleep(1)
        assert (bench.exactness.id_exact, bench.trusts(COMPLETIONS)) == (set(), False)

    run_virtually(main())


def test_usage_that_contradicts_a_count_is_told_once_and_believed_until_a_reload() -> None:
    async def main() -> None:
        bench = Bench(Server())
        await bench.compare()
        for _ in range(2):
            bench.exactness.contradicted("m", CHAT, 5, 7)
        assert (bench.trusts(CHAT), bench.trusts(COMPLETIONS)) == (False, True)
        (line,) = [line for line in bench.logged if line.startswith("error")]
        assert "counted 5 tokens in a request to /v1/chat/completions for which the engine reports 7" in line
        await bench.compare()
        assert bench.trusts(CHAT)

    run_virtually(main())


def test_the_end_stops_comparing() -> None:
    async def main() -> None:
        server = Server(refuses=10**9)
        bench = Bench(server)
        await bench.compare()
        bench.exactness.close()
        asked = server.asked
        await asyncio.sleep(1000)
        assert server.asked == asked

    run_virtually(main())


def test_probes_hold_what_tokenizers_part_over() -> None:
    everything = "".join(PROBES)
    for hard in ("<|im_end|>", "  ", "\n\n\n", "\t", "漢", "🦆", "3.14", "'ll", "\u200b"):
        assert hard in everything.replace("THEY'LL", "they'll")
    assert isinstance(one_a_byte(Tokenize("t", "x")), Told)
