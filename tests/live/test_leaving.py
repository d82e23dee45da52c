"""Fifty clients leave at once: how soon the engine knows, and whether every slot comes back.

On the upstream of ``tidegate.testing`` both ends are known to the microsecond: the client's close, and the moment in
which the engine loses the connection. On the real engine it is its own word, and ours, that nothing runs any more. The
figures are printed: ``pytest -m live -s tests/live/test_leaving.py``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from tests.live import running
from tests.live.running import Exchange, Service, said, until
from tidegate.testing.upstream_process import UpstreamProcess

pytestmark = pytest.mark.live

CLIENTS = 50
TOLD_WITHIN_S = 0.05
LONG = 4000
"""Tokens that no client stays for."""


@pytest.fixture(scope="module", params=["vllm", "openai"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """The service before an upstream that has a slot for each client."""
    with made_service(tmp_path_factory.mktemp("leaving"), slots=CLIENTS, kind=request.param) as started:
        yield started


class Made:
    def __init__(self, upstream: UpstreamProcess, service: Service) -> None:
        self.upstream = upstream
        self.service = service

    def ended(self, ids: set[str]) -> dict[str, float]:
        """When the engine lost the connection, by request id."""
        return {
            each["request_id"]: each["ended_at"]
            for each in self.upstream.log()
            if each["request_id"] in ids and each["end"] == "left"
        }

    def is_free(self) -> bool:
        view = self.service.view()
        held = sum(each["in_flight"] + each["aborting"] for each in view["replicas"].values())
        return not (view["open_requests"] or view["permits"] or view["waiting"] or held)


@contextmanager
def made_service(folder: Path, *, slots: int, kind: str = "vllm") -> Iterator[Made]:
    with UpstreamProcess(slots=slots, pace_s=0.05, kind=kind) as upstream:
        replica = {"name": "a", "url": upstream.url, "sequences": slots}
        config = {
            "upstreams": {running.MODEL: {"replicas": [replica]}},
            "classes": {"interactive": {"max_wait_s": 600}, "long": {"max_wait_s": 600}},
        }
        path = folder / "tidegate.json"
        path.write_text(json.dumps(config))
        with running.service(folder / "serve.log", "--config", str(path)) as service:
            yield Made(upstream, service)


def show(what: str, told_s: list[float], freed_s: float) -> None:
    print(  # noqa: T201 - the figures are what somebody runs this for
        f"\n{what}: {len(told_s)} of {CLIENTS} told, P50 {median(told_s) * 1000:.1f} ms, "
        f"most {max(told_s) * 1000:.1f} ms; every slot free {freed_s:.2f} s after the first left"
    )


@pytest.mark.parametrize("stream", [True, False])
def test_the_engine_is_told_of_each_client_that_leaves(made: Made, stream: bool) -> None:
    salt = f"{'stream' if stream else 'whole'}-{time.monotonic():.3f}"
    ids = [f"{salt}-{number}" for number in range(CLIENTS)]
    clients = [
        Exchange(made.service.url, said(each, max_tokens=LONG, stream=stream), {"x-request-id": each}) for each in ids
    ]
    for client in clients if stream else ():
        client.read_events(2)
    until(lambda: made.service.view()["permits"] == CLIENTS, 10)
    left_at = {each: client.leave() for each, client in zip(ids, clients, strict=True)}
    until(made.is_free, 10, every_s=0.02)
    freed_s = time.monotonic() - min(left_at.values())
    ended_at = made.ended(set(ids))
    told_s = [ended_at[each] - left_at[each] for each in ids]
    show(f"{'streams' if stream else 'whole answers'}", told_s, freed_s)
    assert max(told_s) <= TOLD_WITHIN_S
    view = made.service.view()
    assert (view["permit_leaks"], made.is_free()) == (0, True)


def test_a_client_that_leaves_the_queue_never_reaches_the_engine(tmp_path: Path) -> None:
    with made_service(tmp_path, slots=1) as made:
        first = Exchange(made.service.url, said("first", max_tokens=LONG, stream=True), {"x-request-id": "first"})
        first.read_events(2)
        clients = [
            Exchange(made.service.url, said(f"{n}", max_tokens=8, stream=bool(n % 2)), {"x-request-id": f"queued-{n}"})
            for n in range(CLIENTS)
        ]
        until(lambda: made.service.view()["waiting"] == CLIENTS, 10)
        left_at = [client.leave() for client in clients]
        gone_s = until(lambda: made.service.view()["waiting"] == 0, 10, every_s=0.0)
        print(f"\nqueued: {CLIENTS} of {CLIENTS} gone {gone_s * 1000:.0f} ms after the last left")  # noqa: T201 - a figure
        assert time.monotonic() - left_at[-1] < 1.0
        first.read_events(4)
        first.leave()
        until(made.is_free, 10)
        assert [each["request_id"] for each in made.upstream.log()] == ["first"]


def test_of_the_real_engine_every_slot_comes_back(service: Service) -> None:
    """Running and queued ones at once, then rounds of as many as it has sequences, until fifty have left it."""
    freed_s = []
    for number in range(0, CLIENTS + 1, 5):
        bodies = [
            said(f"Tell story {number + n}.", max_tokens=1000, stream=bool(n % 2), ignore_eos=True) for n in range(5)
        ]
        clients = [Exchange(service.url, body) for body in bodies]
        until(lambda: service.replica()["in_flight"] == 4, 30)
        time.sleep(0.5)
        left_at = [client.leave() for client in clients]
        until(service.is_idle, 10)
        freed_s.append(time.monotonic() - left_at[0])
    left = 5 * len(freed_s)
    print(  # noqa: T201 - the figures are what somebody runs this for
        f"\nreal engine: {left} of {left} left, slots free after P50 {median(freed_s):.2f} s, most {max(freed_s):.2f} s"
    )
    assert max(freed_s) <= 3.0
    view = service.view()
    assert (view["permit_leaks"], view["abort_unconfirmed"]) == (0, 0)
