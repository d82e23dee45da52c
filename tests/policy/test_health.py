"""How a model is doing: good, degraded, failed and shed counted apart, over the last seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.classes import INTERACTIVE
from tidegate.policy.decisions import Reason
from tidegate.policy.health import FAILED, MOST_SAMPLES, SHED, Health
from tidegate.policy.health_config import HealthConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.record import Record
from tidegate.policy.request import Request

CONFIG = HealthConfig()
ONE = PathConfig(replicas=(replica_config("a1", sequences=1),))


class Models:
    """A model "a" whose requests end as a test says."""

    def __init__(self, config: HealthConfig = CONFIG) -> None:
        self.events = Events(Path(ONE, 0.0))
        self.health = Health(self.events.path.upstreams, config)
        self.now = 0.0

    def close(
        self,
        outcome: Outcome | None = None,
        *,
        refused: Reason | None = None,
        degraded: str | None = None,
        first_s: float = 0.1,
        whole_s: float = 0.2,
        streaming: bool = True,
        model: str = "a",
        count: int = 1,
    ) -> None:
        for _ in range(count):
            request = Request(1, model, self.now - whole_s, 0, streaming=streaming)
            record = Record(request, INTERACTIVE, request.arrived_at)
            record.outcome, record.refused, record.degraded = outcome, refused, degraded
            record.first_token_at = request.arrived_at + first_s
            record.closed_at = self.now
            self.health.note(record)

    def report(self) -> dict[str, object]:
        found = self.health.report("a", self.now)
        assert found is not None
        return found


def test_a_model_that_nobody_asked_for_is_ok_and_says_nothing_of_latency() -> None:
    assert Models().report() == {
        "model": "a",
        "state": "ok",
        "p90_ms": None,
        "error_rate": 0.0,
        "p90_whole_ms": None,
        "shed_rate": 0.0,
        "degraded_rate": 0.0,
        "requests": 0,
        "window_s": 30.0,
        "queue_depth": 0,
        "predicted_wait_ms": 0,
        "retry_after_ms": 0,
        "replicas_up": 1,
        "replicas_usable": 1,
    }


def test_the_p90_is_that_of_the_nearest_rank() -> None:
    models = Models()
    for number in range(1, 11):
        models.close(Outcome.OK, first_s=number / 10, whole_s=number * 2.0)
    report = models.report()
    assert (report["p90_ms"], report["p90_whole_ms"], report["requests"]) == (900, 18_000, 10)


def test_answers_that_do_not_stream_have_no_first_byte() -> None:
    models = Models()
    models.close(Outcome.OK, streaming=False, whole_s=3.0, count=10)
    report = models.report()
    assert (report["p90_ms"], report["p90_whole_ms"], report["state"]) == (None, 3000, "ok")


def test_each_kind_of_end_is_counted_apart() -> None:
    models = Models()
    models.close(Outcome.OK, count=6)
    models.close(Outcome.CUT, count=2)
    models.close(Outcome.OK, degraded="light_model")
    models.close(refused=Reason.QUEUE_FULL, degraded="cache")
    models.close(refused=Reason.QUEUE_FULL, count=10)
    report = models.report()
    assert (report["error_rate"], report["degraded_rate"], report["shed_rate"]) == (0.2, 0.2, 0.5)


@pytest.mark.parametrize("reason", [*Reason])
def test_a_refusal_is_shed_failed_or_none_of_the_models_doing(reason: Reason) -> None:
    models = Models()
    models.close(refused=reason)
    report = models.report()
    assert report["shed_rate"] == float(reason in SHED)
    assert report["error_rate"] == float(reason in FAILED)
    assert not SHED & FAILED


@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_clients_who_leave_and_mistakes_say_nothing(outcome: Outcome | None) -> None:
    models = Models()
    models.close(outcome)
    not_counted = (Outcome.CLIENT_LEFT, Outcome.CLIENT_FAULT, Outcome.SHUTDOWN, None)
    assert models.report()["requests"] == (0 if outcome in not_counted else 1)
    assert models.report()["error_rate"] == float(outcome not in (Outcome.OK, *not_counted))


def test_what_is_older_than_the_window_is_forgotten() -> None:
    models = Models()
    models.close(Outcome.CUT, count=10)
    for models.now in (10.0, 29.0):
        models.close(Outcome.OK, count=1)
    assert models.report()["requests"] == 12
    models.now = 30.0
    assert models.report()["requests"] == 2
    models.now = 90.0
    assert models.report()["requests"] == 0


def test_of_a_busy_slice_the_latest_latencies_are_kept() -> None:
    models = Models()
    models.close(Outcome.OK, first_s=0.1, count=MOST_SAMPLES)
    models.close(Outcome.OK, first_s=5.0, count=MOST_SAMPLES)
    report = models.report()
    assert (report["p90_ms"], report["requests"]) == (5000, 2 * MOST_SAMPLES)
    models.close(Outcome.OK, streaming=False, whole_s=9.0, count=MOST_SAMPLES)
    assert (models.report()["p90_ms"], models.report()["p90_whole_ms"]) == (5000, 9000)


@pytest.mark.parametrize(
    ("good", "ends", "state"),
    [
        (99, {"outcome": Outcome.CUT}, "ok"),
        (98, {"outcome": Outcome.CUT, "count": 2}, "degraded"),
        (98, {"refused": Reason.QUEUE_FULL, "degraded": "cache", "count": 2}, "degraded"),
        (95, {"refused": Reason.QUEUE_FULL, "count": 5}, "ok"),
        (94, {"refused": Reason.QUEUE_FULL, "count": 6}, "overloaded"),
        (80, {"outcome": Outcome.OK, "first_s": 1.1, "count": 20}, "degraded"),
        (2, {"outcome": Outcome.CUT, "count": 2}, "ok"),
        (0, {"outcome": Outcome.CUT, "count": 4}, "ok"),
        (0, {"outcome": Outcome.CUT, "count": 5}, "down"),
    ],
)
def test_the_state_is_the_first_that_holds(good: int, ends: dict[str, object], state: str) -> None:
    models = Models()
    models.close(Outcome.OK, count=good)
    models.close(**ends)  # type: ignore[arg-type]  # keywords of close, one type each
    report = models.report()
    assert report["state"] == state
    assert report["retry_after_ms"] == (1000 if state in ("down", "overloaded") else 0)


def test_a_model_without_a_replica_that_is_up_is_down() -> None:
    models = Models()
    models.close(Outcome.OK, count=10)
    models.events.observe("a1", ready=False)
    report = models.report()
    assert (report["state"], report["replicas_up"], report["replicas_usable"]) == ("down", 0, 0)


def test_a_newcomer_that_would_wait_long_finds_it_overloaded() -> None:
    models = Models()
    events = models.events
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    for _ in range(5):
        events.offer(prompt_tokens=1000, max_tokens=10)
    report = models.report()
    assert (report["state"], report["queue_depth"]) == ("overloaded", 4)
    assert report["predicted_wait_ms"] == report["retry_after_ms"] == 4000


def test_who_waits_without_a_known_rate_is_predicted_nothing() -> None:
    models = Models()
    for _ in range(2):
        models.events.offer(prompt_tokens=1000, max_tokens=10)
    assert (models.report()["predicted_wait_ms"], models.report()["queue_depth"]) == (0, 1)


def test_what_another_model_served_counts_for_the_one_that_was_asked_for() -> None:
    models = Models()
    request = Request(1, "light", 0.0, 0)
    models.health.note(Record(request, INTERACTIVE, 0.0, outcome=Outcome.OK, degraded="light_model", model="a"))
    assert models.report()["degraded_rate"] == 1.0


def test_an_unknown_model_leaves_no_trace_and_has_no_report() -> None:
    models = Models()
    models.close(refused=Reason.UNKNOWN_MODEL, model="z")
    assert models.health.report("z", 0.0) is None
    assert [each["model"] for each in models.health.reports(0.0)] == ["a"]


def test_another_window_begins_empty_and_the_same_one_goes_on() -> None:
    models = Models()
    models.close(Outcome.OK)
    models.health.reconfigure(replace(CONFIG, p90_s=5.0))
    assert models.report()["requests"] == 1
    models.health.reconfigure(replace(CONFIG, window_s=60.0))
    assert models.report()["requests"] == 0
    models.close(Outcome.OK)
    models.events.apply(PathConfig())
    models.health.reconfigure(replace(CONFIG, window_s=60.0))
    assert models.health.reports(0.0) == []


def test_path_tells_it_of_every_request_that_is_closed() -> None:
    events = Events(Path(ONE, 0.0))
    events.offer(max_tokens=10)
    events.settle(0, Outcome.OK)
    report = events.path.oversight.health.report("a", 0.0)
    assert report is not None
    assert report["requests"] == 1


@pytest.mark.parametrize("wrong", [{"window_s": 0.0}, {"p90_s": 0.0}, {"error_share": 1.1}, {"shed_share": -0.1}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="health"):
        replace(CONFIG, **wrong)
