"""Engines are asked to count in bounded number, one after the other until one answers. In virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.gateway.fake_tokenizers import FakeSpawn
from tidegate.engines.llamacpp.server import LlamaServer
from tidegate.engines.vllm.readings import VllmServer
from tidegate.errors import EngineError, ProtocolError
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.tally import (
    COUNT_WITHIN_S,
    LARGEST_BODY_BYTES,
    MOST_AT_ONCE,
    MOST_PENDING_BYTES,
    Tally,
    counter_at,
)
from tidegate.gateway.tokenizer_pool import TokenizerPool
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.token_source import TokenSource
from tidegate.testing.virtual_loop import run_virtually

PATH = "/v1/completions"


class Scripted:
    """Counts after a time, or fails."""

    def __init__(self, result: tuple[int, ...] | Exception | None, after_s: float = 0.0) -> None:
        self.result = result
        self.after_s = after_s
        self.asked = 0

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        self.asked += 1
        await asyncio.sleep(self.after_s)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def token_ids(self, text: str) -> list[int] | None:
        return None


def endpoint(name: str, kind: str = "vllm") -> Endpoint:
    return Endpoint(name=name, host="h", port=1, kind=kind)


def tally_of(**counters: Scripted) -> Tally:
    tally = Tally(lambda at: counters[at.name])
    serve(tally, *map(endpoint, counters))
    return tally


def serve(tally: Tally, *endpoints: Endpoint) -> None:
    tally.serve(endpoints, [ReplicaConfig(name=each.name, upstream="m") for each in endpoints])


async def count(tally: Tally, body: bytes = b"{}") -> tuple[int, ...] | None:
    task = tally.begin("m", PATH, body)
    assert task is not None
    tallied = await task
    assert tallied is None or tallied.source is TokenSource.ENGINE
    return None if tallied is None else tallied.tokens


def test_only_engines_with_a_tokenizer_and_a_key_of_ours_are_asked() -> None:
    async def main() -> None:
        tally = tally_of(a=Scripted((7,)))
        assert tally.begin("other", PATH, b"{}") is None
        assert await count(tally) == (7,)
        serve(tally, endpoint("a", "openai"), replace(endpoint("b"), is_passthrough=True))
        assert tally.begin("m", PATH, b"{}") is None
        tally.serve([endpoint("a")], [])
        assert tally.begin("m", PATH, b"{}") is None

    run_virtually(main())


@pytest.mark.parametrize("failure", [ConnectionRefusedError("no"), ProtocolError("cut"), TimeoutError()])
def test_an_engine_that_does_not_answer_is_asked_last_from_then_on(failure: Exception) -> None:
    async def main() -> None:
        silent, good = Scripted(failure), Scripted((7,))
        tally = tally_of(silent=silent, good=good)
        assert [await count(tally) for _ in range(3)] == [(7,)] * 3
        assert (silent.asked, good.asked) == (1, 3)

    run_virtually(main())


def test_a_request_that_an_engine_finds_wrong_is_not_taken_to_the_next() -> None:
    async def main() -> None:
        strict, other = Scripted(EngineError("400")), Scripted((7,))
        assert await count(tally_of(strict=strict, other=other)) is None
        assert (strict.asked, other.asked) == (1, 0)

    run_virtually(main())


def test_a_count_that_takes_too_long_is_given_up_and_the_next_goes_elsewhere() -> None:
    async def main() -> None:
        tally = tally_of(slow=Scripted((7,), after_s=60.0), good=Scripted((8,)))
        began_at = asyncio.get_running_loop().time()
        assert await count(tally) is None
        assert asyncio.get_running_loop().time() - began_at == COUNT_WITHIN_S
        assert await count(tally) == (8,)

    run_virtually(main())


def test_when_nobody_counts_there_is_no_count() -> None:
    async def main() -> None:
        assert await count(tally_of(a=Scripted(OSError()), b=Scripted(None))) is None
        assert await count(tally_of(a=Scripted(OSError()), b=Scripted(OSError()))) is None

    run_virtually(main())


def test_what_is_under_way_is_bounded_in_number_and_bytes() -> None:
    async def main() -> None:
        tally = tally_of(a=Scripted((7,), after_s=1.0))
        some = [tally.begin("m", PATH, b"{}") for _ in range(MOST_AT_ONCE + 1)]
        assert [task is None for task in some] == [False] * MOST_AT_ONCE + [True]
        await asyncio.gather(*(task for task in some if task is not None))
        assert tally.begin("m", PATH, bytes(LARGEST_BODY_BYTES + 1)) is None
        fit = MOST_PENDING_BYTES // LARGEST_BODY_BYTES
        large = [tally.begin("m", PATH, bytes(LARGEST_BODY_BYTES)) for _ in range(fit + 1)]
        assert [task is None for task in large] == [False] * fit + [True]
        await asyncio.gather(*(task for task in large if task is not None))
        assert await count(tally, bytes(LARGEST_BODY_BYTES)) == (7,)

    run_virtually(main())


def test_an_adapter_is_made_once_and_again_when_its_endpoint_changes() -> None:
    async def main() -> None:
        made: list[Endpoint] = []

        def make(at: Endpoint) -> Scripted:
            made.append(at)
            return Scripted((len(made),))

        tally = Tally(make)
        for at in (endpoint("a"), endpoint("a"), replace(endpoint("a"), port=2)):
            serve(tally, at)
            await count(tally)
        assert [at.port for at in made] == [1, 2]

    run_virtually(main())


def test_a_tokenizer_is_compared_where_there_is_an_engine_and_a_key_of_ours() -> None:
    async def main() -> None:
        server, compared = Scripted((7,)), list[str]()

        def make(at: Endpoint) -> Scripted:
            compared.append(at.name)
            return server

        tally = Tally(make, TokenizerPool(FakeSpawn()))
        file = replace(endpoint("a"), tokenizer="t")
        serve(tally, file, replace(file, name="b", is_passthrough=True), replace(file, name="c", port=0), endpoint("d"))
        await asyncio.sleep(1)
        assert compared == ["a"]
        assert tally.has_tokenizer("m", PATH)
        tally.close()

    run_virtually(main())


def test_the_adapter_is_that_of_the_kind() -> None:
    assert isinstance(counter_at(endpoint("a", "llamacpp")), LlamaServer)
    assert isinstance(counter_at(endpoint("a", "vllm")), VllmServer)
