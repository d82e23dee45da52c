"""The drills on the gateway's own clock, disk and lesser answers, played on a deployment without processes."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.load.drills.made_findings import findings
from tests.load.drills.scripted_own import ScriptedOwn, ScriptedStandIn, sample, scene_of, sender
from tidegate.errors import EngineError
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills import clock_fault, clock_jump, disk_full, tail_breaker
from tidegate.load.drills.clock_fault import ClockJump, clock_env, library
from tidegate.load.drills.disk_fault import DiskFull
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.findings import Findings
from tidegate.load.sample import Sample
from tidegate.load.target import Target
from tidegate.testing.virtual_loop import run_virtually

OK, SHED, ERROR, DEGRADED = ClientOutcome.OK, ClientOutcome.SHED, ClientOutcome.ERROR, ClientOutcome.DEGRADED


def verdicts(drill: Drill, found: Findings) -> dict[str, bool | None]:
    return {bar.name: bar.judge(found).passed for bar in drill.bars}


# ---- clock-jump --------------------------------------------------------------------------------------


def test_the_clock_is_turned_by_a_file_where_the_gateway_runs_virtually(tmp_path: Path) -> None:
    own = ScriptedOwn(tmp_path)
    run_virtually(ClockJump().break_(own, None))
    assert (tmp_path / "clock").read_text() == "+3600\n"
    run_virtually(ClockJump().restore(own, None))
    assert (tmp_path / "clock").read_text() == "+0\n"


def test_the_library_is_looked_for_and_its_absence_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library((str(tmp_path),)) == ""
    path = tmp_path / "x86_64-linux-gnu" / "faketime" / "libfaketimeMT.so.1"
    path.parent.mkdir(parents=True)
    path.touch()
    assert library((str(tmp_path),)) == str(path)
    assert clock_env(str(path))["LD_PRELOAD"] == str(path)
    assert clock_env("") == {}
    monkeypatch.setattr(clock_fault, "library", lambda: "")
    assert "libfaketime" in ClockJump().why_not()
    monkeypatch.setattr(clock_fault, "library", lambda: "there")
    assert ClockJump().why_not() == ""


def test_timeouts_and_quotas_are_tried_ahead_and_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[int] = []

    def answer(target: Target, ask: Ask) -> Sample:
        if target.model == clock_jump.STUCK:
            return sample(ask, ERROR, ended_at=5.0)
        passed.append(ask.index)
        return sample(ask, OK if len(passed) <= 6 else SHED)

    async def turned(folder: Path, seconds: int) -> None:
        (folder / "clock").write_text(str(seconds))

    async def main() -> Findings:
        own = ScriptedOwn(tmp_path)
        own.scripted.requests = [
            {"arrived_unix_s": time.time() + 3600, "upstream": clock_jump.LIMITED, "retry_after_s": 11.0},
            {"arrived_unix_s": time.time(), "upstream": "m"},
        ]
        scene = scene_of(own, Pace(baseline_s=0.0, fault_s=5.0, after_s=0.0))
        await clock_jump.play(scene)
        assert not scene.findings.left_broken
        return scene.findings

    monkeypatch.setattr(clock_jump, "Sender", sender(answer))
    monkeypatch.setattr(clock_jump, "StandIn", ScriptedStandIn)
    monkeypatch.setattr(clock_jump, "turn", turned)
    found = asyncio.run(main())
    assert found.figures["passed_limit"] == 6
    assert found.figures["longest_retry_after_s"] == 11.0
    told = verdicts(clock_jump.DRILL, found)
    assert told["the clock was ahead by"]
    assert told["and then behind by"] is False
    assert told["a hanging engine's first-byte timeout came after"]
    assert told["requests beyond the minute's quota"]


def test_a_quota_that_a_jump_has_filled_is_seen() -> None:
    figures = clock_jump.figures_of([sample()] * 9, [], 10.0, [])
    assert figures["beyond_limit"] == 2.0
    assert clock_jump.clock_off_s([], 0.0) is None


# ---- disk-full -----------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prlimit")
def test_files_of_a_full_disk_do_not_grow_until_there_is_room(tmp_path: Path) -> None:
    own, fault = ScriptedOwn(tmp_path), DiskFull()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        own.scripted.pid = process.pid
        asyncio.run(fault.break_(own, None))
        assert resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[0] == 0
        asyncio.run(fault.restore(own, None))
        assert resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[0] != 0
        asyncio.run(fault.break_(own, None))
        process.kill()
        process.wait()
        asyncio.run(fault.restore(own, None))
    assert fault.why_not() == ""


def test_a_gateway_that_does_not_run_has_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="does not run"):
        asyncio.run(DiskFull().break_(ScriptedOwn(tmp_path), None))
    monkeypatch.setattr("sys.platform", "darwin")
    assert "Linux" in DiskFull().why_not()


class Writing(ScriptedOwn):
    """A gateway whose log goes on when the disk has room."""

    async def restore(self, fault: str, replica: str | None) -> None:
        await super().restore(fault, replica)
        self.scripted.log += "[WARN] this log could not be written 20 times\n"


def test_a_full_disk_is_judged_by_the_log_and_by_who_is_still_there(tmp_path: Path) -> None:
    scene = scene_of(Writing(tmp_path))
    asyncio.run(disk_full.play(scene))
    assert all(
        passed for name, passed in verdicts(disk_full.DRILL, scene.findings).items() if name != "back at the baseline"
    )


# ---- tail-breaker --------------------------------------------------------------------------------------


def tail_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **shown: Any) -> Findings:
    asked: list[Ask] = []
    own = ScriptedOwn(tmp_path)
    own.scripted.answers["/admin/marks"] = {"marks": [{"key": tail_breaker.USER_IP}, *shown.get("marks", ())]}
    own.scripted.requests = [{"upstream": tail_breaker.TAIL, "service_class": "long"}] * 7
    own.scripted.refused = frozenset({"DELETE"})

    def answer(_target: Target, ask: Ask) -> Sample:
        asked.append(ask)
        if len(asked) == 2:
            own.scripted.log += f"[WARN] {tail_breaker.LINE}\n"
        is_lesser = 2 <= len(asked) <= 8
        return sample(ask, DEGRADED if is_lesser else OK, ended_at=3.2 if 2 <= len(asked) <= 6 else 0.2)

    monkeypatch.setattr(tail_breaker, "Sender", sender(answer))
    monkeypatch.setattr(tail_breaker, "StandIn", ScriptedStandIn)
    scene = scene_of(own)
    asyncio.run(tail_breaker.play(scene))
    assert len(asked) == 9
    return scene.findings


def test_the_users_long_prompts_get_lesser_answers_and_then_go_straight_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tail_played(tmp_path, monkeypatch)
    assert found.figures["triggering_longest_s"] == 3.2
    assert all(verdicts(tail_breaker.DRILL, found).values())


def test_a_mark_on_somebody_else_fails_the_drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tail_played(tmp_path, monkeypatch, marks=[{"key": "127.0.0.1"}])
    assert verdicts(tail_breaker.DRILL, found)["others that were marked"] is False


def test_an_answer_that_is_not_labelled_is_counted() -> None:
    found = findings(figures=tail_breaker.figures_of([sample(outcome=OK)], [sample(outcome=ERROR)]))
    assert found.figures["unlabelled"] == 1
    assert found.figures["unanswered"] == 1


def test_the_prompt_is_above_the_threshold_of_class_long() -> None:
    ask = tail_breaker.long_ask(1, 5.0)
    assert len(ask.body) / 4 > tail_breaker.THRESHOLD_TOKENS
    assert dict(ask.headers) == {"x-forwarded-for": tail_breaker.USER_IP}
