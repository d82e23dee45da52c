"""Plays attacks on a gateway in memory and virtual time, and holds it to what must always be true."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from tests.fuzz.answers import Answer, MalformedError, answers_in
from tests.fuzz.attack import Attack
from tests.gateway.stand import Engine, Stand, stand_for
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.settings import Endpoint, Limits, Timers
from tidegate.policy.path_config import PathConfig
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.testing.memory_transport import memory_pair
from tidegate.testing.virtual_loop import run_virtually

AT_ONCE = 40
QUIET_S = 0.3
PATIENCE_S = 60.0
TIMERS = Timers(head_s=2.0, idle_s=5.0)
LIMITS = Limits(head_bytes=32 * 1024)
"""Below what the scripted engine reads."""
ENDPOINTS = (Endpoint(name="r1", host="127.0.0.1", port=9000, model="theirs"),)
"""By another name of the model, so that every body is edited."""
SHORT = PhaseConfig(floor_s=2.0, ceiling_s=2.0, default_s=2.0)
PATH = PathConfig(timeouts=TimeoutsConfig(first_byte=SHORT, gap=SHORT, total=SHORT))


class Hostile(asyncio.Protocol):
    """One attacker's end of its connection."""

    def __init__(self) -> None:
        self.raw = b""
        self.is_closed = False

    def data_received(self, data: bytes) -> None:
        self.raw += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


async def play(stand: Stand, given: Attack) -> list[Answer]:
    """Attack on a connection of its own; every answer that came. Raises ``MalformedError``."""
    client = Hostile()
    transport, _ = memory_pair(client, ClientConnection(stand.gateway))
    for piece in given.pieces:
        transport.write(piece)
        await asyncio.sleep(0.001)
    waits = given.ending == "wait"
    if waits:
        await _until_quiet(stand, client, given)
    is_closed = client.is_closed
    transport.abort() if given.ending == "reset" else transport.close()
    answers = answers_in(client.raw, is_closed=is_closed and waits and not given.may_be_cut, is_head=given.is_head)
    if waits and given.is_due and not answers:
        raise MalformedError("no answer came")
    return answers


async def _until_quiet(stand: Stand, client: Hostile, given: Attack) -> None:
    """Until the server closes, or has answered and says nothing more for a while."""
    ends_at, heard_at, seen = stand.loop.time() + PATIENCE_S, stand.loop.time(), b""
    while not client.is_closed:
        now = stand.loop.time()
        if client.raw != seen:
            seen, heard_at = client.raw, now
        if now - heard_at >= QUIET_S and answers_in(seen, is_closed=False, is_head=given.is_head):
            return
        if now > ends_at:
            raise MalformedError(f"neither an answer nor an end within {PATIENCE_S} s; so far {seen[:200]!r}")
        await asyncio.sleep(0.05)


def hold_to_it(engine: Engine, attacks: Iterable[Attack]) -> list[Answer]:
    """Play them all, some at once; every answer. Raises AssertionError naming the attacks that broke something."""
    answers: list[Answer] = []
    broken: list[str] = []

    async def one(stand: Stand, given: Attack) -> None:
        try:
            answers.extend(await play(stand, given))
        except MalformedError as error:
            broken.append(f"{given.name}, {given.ending}: {error}\n    {given.sent[:400]!r}")

    async def main() -> None:
        bugs: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(repr(context)))
        with stand_for(engine, path=PATH, timers=TIMERS, limits=LIMITS, endpoints=ENDPOINTS, asks_usage=True) as stand:
            for batch in batches(attacks, AT_ONCE):
                await asyncio.gather(*(one(stand, given) for given in batch))
                assert not bugs, f"{bugs[0]}\n  among " + "\n  ".join(repr(each)[:600] for each in batch)
            await _is_empty(stand)

    run_virtually(main())
    assert not broken, f"{len(broken)} broke something:\n" + "\n".join(broken[:10])
    return answers


async def _is_empty(stand: Stand) -> None:
    """Nothing is left of any of them."""
    await stand.until(lambda: not stand.gateway.open_requests and not stand.permits, PATIENCE_S)
    await stand.until(lambda: not stand.gateway.connections, PATIENCE_S)
    view = stand.path.view(stand.loop.time())
    assert (view["open_requests"], view["waiting"], view["permit_leaks"], stand.driver.waiting) == (0, 0, 0, 0)
    # What cannot travel to the parent would end the data process.
    assert msgspec.msgpack.encode([stand.rows, view, stand.path.dump(stand.loop.time())])
    # A model may be called nothing, so the tenant tells which rows were requests.
    assert len([row for row in stand.rows if row.tenant]) == len(stand.noted.offered)


def batches(attacks: Iterable[Attack], size: int) -> Iterable[list[Attack]]:
    found: list[Attack] = []
    for each in attacks:
        found.append(each)
        if len(found) == size:
            yield found
            found = []
    yield found
