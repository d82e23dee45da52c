"""DESIGN's invariants over a long random life of the simulated gateway: nothing leaks, everything ends once."""

from __future__ import annotations

import pytest

from tests.simulate.chaos import Chaos
from tidegate.policy.decisions import Admit
from tidegate.policy.outcomes import Outcome
from tidegate.policy.request import Request
from tidegate.simulate.visit import MODEL


def survive(chaos: Chaos) -> None:
    chaos.run()
    path, now = chaos.path, chaos.clock.now
    path.check(now)
    view = path.view(now)
    assert (view["open_requests"], view["permits"], view["waiting"], view["permit_leaks"]) == (0, 0, 0, 0)
    assert path.counts["offer"] == path.counts["close"] == len(path.records)
    assert len({record.request.id for record in path.records}) == len(path.records)
    assert chaos.clients.live == 0
    for upstream in path.upstreams.values():
        for placed in upstream.replicas:
            assert (placed.in_flight, placed.slots.held, placed.pending_tokens) == (0, 0, 0)
    for account in path.quota.accounts.values():
        assert (account.charged, account.open) == (account.settled + account.refunded, 0)
    for replica in chaos.replicas:
        reading = replica.reading()
        assert (reading.running, reading.waiting, reading.kv_used_tokens) == (0, 0, 0)


def admits_again(chaos: Chaos) -> bool:
    """Liveness: an idle system takes anybody."""
    now = chaos.clock.now
    request = Request(id=10**9, upstream=MODEL, arrived_at=now, draw=1, prompt_tokens=100, max_tokens=10)
    return isinstance(chaos.path.offer(request, now), Admit)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_permit_leaks_in_a_thousand_troubled_visits(seed: int) -> None:
    chaos = Chaos(visits=1000, seed=seed, check_every=1)
    survive(chaos)
    assert admits_again(chaos)


@pytest.mark.slow
def test_no_permit_leaks_in_a_hundred_thousand_events() -> None:
    chaos = Chaos(visits=40_000, seed=11, check_every=50)
    survive(chaos)
    assert chaos.events >= 100_000
    assert admits_again(chaos)
    # The storm is worth its name only if every kind of trouble was in it.
    for kind in ("crash", "hang", "slow"):
        assert chaos.counts[kind] > 50
    seen = {record.outcome for record in chaos.path.records}
    assert seen >= {
        None,
        Outcome.OK,
        Outcome.CLIENT_LEFT,
        Outcome.CONNECT_FAILED,
        Outcome.CUT,
        Outcome.FIRST_BYTE_TIMEOUT,
        Outcome.GAP_TIMEOUT,
    }
