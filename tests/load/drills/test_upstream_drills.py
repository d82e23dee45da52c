"""The drills on networks and upstreams, played on a deployment without processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.load.drills.made_findings import findings
from tests.load.drills.scripted_own import AT_ONCE, ScriptedOwn, ScriptedStandIn, sample, scene_of, sender
from tidegate.errors import EngineError
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills import migrate, network_jitter, quota_cut, stale_metrics, upstream_timeout
from tidegate.load.drills.drain_fault import Drain
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.impairment import NOTHING, Pages
from tidegate.load.drills.jitter_fault import TO_ENGINES, Jitter
from tidegate.load.drills.own_scene import order, own_of
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.stale_fault import STALE, StalePages
from tidegate.load.drills.stand_in import StandIn
from tidegate.load.sample import Sample
from tidegate.load.target import Target

OK, SHED, ERROR, BROKEN = ClientOutcome.OK, ClientOutcome.SHED, ClientOutcome.ERROR, ClientOutcome.BROKEN


def verdicts(drill: Drill, found: Findings) -> dict[str, bool | None]:
    return {bar.name: bar.judge(found).passed for bar in drill.bars}


def impairment_of(proxy: FaultProxy) -> Any:
    return proxy.state()["impairment"]


def with_proxies(own: ScriptedOwn) -> list[FaultProxy]:
    own.between = {name: FaultProxy("http://127.0.0.1:9") for name in own.replicas}
    return [each for each in own.between.values() if isinstance(each, FaultProxy)]


# ---- what is broken ----------------------------------------------------------------------------


def test_the_network_shakes_before_every_engine_and_is_healed(tmp_path: Path) -> None:
    async def main() -> None:
        own = ScriptedOwn(tmp_path)
        proxies = with_proxies(own)
        await Jitter().break_(own, None)
        assert [impairment_of(each)["loss_share"] for each in proxies] == [TO_ENGINES.loss_share] * 2
        await Jitter().restore(own, "replica-1")
        assert [impairment_of(each)["loss_share"] for each in proxies] == [0.0, TO_ENGINES.loss_share]

    asyncio.run(main())
    assert Jitter().why_not() == ""


def test_pages_of_one_engine_go_stale(tmp_path: Path) -> None:
    async def main() -> None:
        own = ScriptedOwn(tmp_path)
        first, second = with_proxies(own)
        fault = StalePages(Pages.FAILING)
        await fault.break_(own, "replica-1")
        assert (impairment_of(first)["pages"], impairment_of(second)["pages"]) == ("failing", "fresh")
        await fault.restore(own, "replica-1")
        assert impairment_of(first)["pages"] == NOTHING.pages
        with pytest.raises(EngineError, match="nothing stands between"):
            await fault.break_(own, "replica-9")

    asyncio.run(main())
    assert StalePages(Pages.FROZEN).why_not() == ""


def test_a_drain_is_an_order_to_the_gateway(tmp_path: Path) -> None:
    async def main() -> None:
        own = ScriptedOwn(tmp_path)
        await Drain().break_(own, "replica-1")
        await Drain().restore(own, "replica-1")
        assert [path for _, path, _ in own.scripted.orders] == [
            "/admin/drain?replica=replica-1&on=true",
            "/admin/drain?replica=replica-1&on=false",
        ]
        with pytest.raises(EngineError, match="names its replica"):
            await Drain().break_(own, None)
        own.scripted.refused = frozenset({"POST"})
        with pytest.raises(EngineError, match="answered 404: no such thing"):
            await order(own, "POST", "/admin/drain")

    asyncio.run(main())
    assert Drain().why_not() == ""


def test_a_deployment_that_was_given_takes_no_orders() -> None:
    with pytest.raises(EngineError, match="not started by the drill"):
        own_of(scene_of(FakeGiven()))  # type: ignore[arg-type]  # no deployment of ours is what is tried


class FakeGiven:
    name = "given"


# ---- network-jitter ------------------------------------------------------------------------------


def test_calls_that_break_are_tried_again_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    all_tried = asyncio.Event()

    def answer(_target: Target, ask: Ask) -> Sample:
        request_id = dict(ask.headers)["x-request-id"]
        tried.append(request_id)
        if len(tried) == 13:
            all_tried.set()
        return sample(ask, BROKEN if request_id.endswith(".0") and ask.index == 0 else OK)

    async def main() -> Scene:
        own = ScriptedOwn(tmp_path)
        proxies = with_proxies(own)
        scene = scene_of(own, Pace(baseline_s=0.0, fault_s=0.02, after_s=0.0, rate_per_s=100.0))
        playing = asyncio.create_task(network_jitter.play(scene))
        await all_tried.wait()
        call = tried[0].rpartition(".")[0]
        own.scripted.requests = [{"request_id": f"{call}.1", "outcome": "ok", "reuse": "joined"}]
        proxies[0].ledger.answered_calls[call] += 1
        proxies[1].ledger.answered_calls[call] += 1
        await playing
        assert own.done == ["break network-jitter None", "restore network-jitter None"]
        return scene

    monkeypatch.setattr(network_jitter, "Sender", sender(answer))
    monkeypatch.setattr("tidegate.load.drills.retrying_clients.FIRST_PAUSE_S", 0.0)
    found = asyncio.run(main()).findings
    assert found.figures["tries_again"] == found.figures["tries_reused"] == 1
    assert found.figures["calls"] == network_jitter.LEAST_CALLS
    assert found.figures["computed_twice_beyond_resets"] == 1
    told = verdicts(network_jitter.DRILL, found)
    assert told["calls lost of clients that try again"]
    assert told["calls computed twice without a reset between gateway and engine"] is False
    assert any("made on" in note for note in found.notes)


def test_errors_count_beyond_the_connections_that_were_reset() -> None:
    found = findings(outcomes={"error": 3})
    assert network_jitter.errors_beyond_resets(found) is None
    found.figures["engine_resets"] = 2
    assert network_jitter.errors_beyond_resets(found) == 1
    assert network_jitter.on_packets("http://127.0.0.1:9").level == "streams"


# ---- upstream-timeout ----------------------------------------------------------------------------


def test_an_api_that_never_answers_is_judged_by_what_its_callers_and_all_others_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(target: Target, ask: Ask) -> Sample:
        assert target.model == upstream_timeout.API
        return sample(ask, ERROR, status=504, ended_at=5.1 if ask.is_stream else 10.2)

    async def main() -> tuple[Findings, ScriptedOwn]:
        own = ScriptedOwn(tmp_path)
        own.scripted.shown["replicas"][upstream_timeout.API] = {"in_flight": 0}
        own.scripted.requests = [
            {"upstream": "slow-api", "streaming": True, "arrived_at": 1.0, "admitted_at": 3.0, "closed_at": 8.1},
            {"upstream": "other", "streaming": True, "arrived_at": 1.0, "admitted_at": 1.0, "closed_at": 99.0},
        ]
        scene = scene_of(own, Pace(baseline_s=0.0, fault_s=1.0, after_s=0.0))
        await upstream_timeout.play(scene)
        return scene.findings, own

    monkeypatch.setattr(upstream_timeout, "Sender", sender(answer))
    monkeypatch.setattr(upstream_timeout, "StandIn", ScriptedStandIn)
    monkeypatch.setattr(upstream_timeout, "SETTLED_AFTER_S", 0.0)
    found, own = asyncio.run(main())
    assert found.figures["api_asked"] == 10
    assert found.figures["api_longest_stream_s"] == 5.1
    assert found.figures["api_longest_whole_s"] == 10.2
    assert found.figures["api_held_s"] == pytest.approx(5.1)
    assert found.figures["api_queued_s"] == 2.0
    assert found.figures["memory_mib"] is None
    told = verdicts(upstream_timeout.DRILL, found)
    assert told["longest that a stream held a place at the API"]
    assert told["requests left in flight at the API"]
    assert told["the data process's memory grew by"] is None
    assert [method for method, *_ in own.scripted.orders] == ["PATCH", "GET", "PATCH"]
    assert own.scripted.orders[-1][2] == {"upstreams.slow-api": None}


def test_the_other_models_latency_is_compared_with_the_baseline() -> None:
    found = findings(baseline_p95_s=0.5, broken_at=10.0, healed_at=20.0)
    assert upstream_timeout.others_slower(found) is None
    found.moments = [(at, 1, 0, p95) for at, p95 in ((5.0, 9.0), (10.0, 0.5), (12.0, 1.0), (14.0, 0.75), (25.0, 9.0))]
    assert upstream_timeout.others_slower(found) == 1.5


# ---- quota-cut -------------------------------------------------------------------------------------


def test_replicas_are_cut_to_one_under_batch_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Ask] = []

    def answer(_target: Target, ask: Ask) -> Sample:
        seen.append(ask)
        return sample(ask, SHED)

    async def main() -> tuple[Findings, ScriptedOwn]:
        own = ScriptedOwn(tmp_path, 3)
        scene = scene_of(own, Pace(baseline_s=0.0, fault_s=0.05, after_s=0.0, rate_per_s=100.0))
        scene.samples += [sample(due_at=at) for at in (0.0, 0.01, 0.02)]
        await quota_cut.play(scene)
        return scene.findings, own

    monkeypatch.setattr("tidegate.load.drills.scene.Sender", sender(answer))
    found, own = asyncio.run(main())
    assert own.done[:2] == ["break drain replica-2", "break drain replica-3"]
    assert len(own.done) == 4
    assert len(seen) == 15
    headers = dict(seen[0].headers)
    assert headers["x-tidegate-class"] == "batch"
    assert headers["x-tidegate-deadline-ms"] == "8000"
    assert found.figures["batch_shed_share"] == 1.0
    assert found.figures["batch_answered_share"] == 0.0


def test_batch_work_that_was_served_before_online_requests_fails_the_drill() -> None:
    online, batch = [sample(), sample(outcome=SHED)], [sample()]
    found = findings(figures=quota_cut.shares(online, batch))
    told = verdicts(quota_cut.DRILL, found)
    assert told["share of online requests that were answered"] is False
    assert told["share by which more batch requests were answered than online ones"] is False
    assert quota_cut.ahead([], online) is None
    assert quota_cut.share([], OK) is None


# ---- migrate -----------------------------------------------------------------------------------------


class Moved(ScriptedOwn):
    """Engines that are made and ended in name only."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.engines = {name: StandIn(name) for name in ("replica-1", "replica-2")}

    async def add_engine(self, name: str) -> None:
        self.done.append(f"add {name}")

    async def remove_engine(self, name: str) -> None:
        self.done.append(f"remove {name}")


def test_a_replica_is_emptied_replaced_and_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: StandIn) -> None:
        return

    async def main() -> tuple[Findings, Moved]:
        own = Moved(tmp_path)
        scene = scene_of(own)
        await migrate.play(scene)
        return scene.findings, own

    monkeypatch.setattr("tidegate.load.drills.scene.Sender", sender(lambda _target, ask: sample(ask)))
    monkeypatch.setattr(StandIn, "start", nothing)
    monkeypatch.setattr(StandIn, "close", nothing)
    found, own = asyncio.run(main())
    assert own.done == [
        "break drain replica-1",
        "add moved",
        "reload ['moved', 'replica-2']",
        "reload ['replica-1', 'moved', 'replica-2']",
        "reload ['replica-1', 'replica-2']",
        "remove moved",
        "restore drain replica-1",
    ]
    assert not found.left_broken
    told = verdicts(migrate.DRILL, found)
    assert told["moved, from the order to the old one's end"]
    assert told["answers of the new replica"] is False


def test_without_the_admin_port_nothing_is_moved(tmp_path: Path) -> None:
    async def main() -> None:
        own = Moved(tmp_path)
        own.scripted.shown = None  # type: ignore[assignment]  # the port is gone
        await migrate.play(scene_of(own))

    with pytest.raises(EngineError, match="does not answer"):
        asyncio.run(main())


# ---- stale-metrics -----------------------------------------------------------------------------------


class Talking(ScriptedOwn):
    """A gateway that says when figures fail."""

    async def break_(self, fault: str, replica: str | None) -> None:
        await super().break_(fault, replica)
        if fault == stale_metrics.FAILING:
            self.scripted.log += f"[WARN] {replica}: its engine tells no figures\n[INFO] another line\n"


def played_stale(own: ScriptedOwn, samples: Sequence[Sample]) -> Findings:
    scene = scene_of(own)
    scene.samples += samples
    asyncio.run(stale_metrics.play(scene))
    return scene.findings


def test_each_way_of_stale_figures_is_made_and_healed_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_metrics, "LEAST_S", 0.0)
    monkeypatch.setattr("tidegate.load.drills.scene.Sender", sender(lambda _target, ask: sample(ask)))
    own = Talking(tmp_path)
    found = played_stale(own, [])
    assert own.done[:6] == [f"{what} {fault.name} replica-1" for fault in STALE for what in ("break", "restore")]
    assert found.figures["metrics-failing: lines of log about it"] == 1
    told = verdicts(stale_metrics.DRILL, found)
    assert told["lines of log about figures that fail"]
    assert told["answers of that replica in the worst of the three"] is False


def test_only_answers_of_that_replica_count() -> None:
    samples = [sample(replica="a"), sample(replica="b"), sample(replica="a", outcome=ERROR)]
    assert stale_metrics.answers_of(samples, "a") == 1
    assert AT_ONCE.fault_s == 0.0
