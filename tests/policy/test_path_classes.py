"""Classes, shares, floors, bursts and the concurrency of a model, through the door."""

from __future__ import annotations

from dataclasses import replace

from tests.policy.machine import Events, replica_config
from tidegate.policy.burst import BurstConfig
from tidegate.policy.class_rules import ClassRule
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.decisions import Admit, Reason, Wait
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.slots import SlotsConfig

ONE = PathConfig(replicas=(replica_config("a1"),))
CLASSES = ClassesConfig().classes


def events_with(config: PathConfig = ONE, rules: tuple[ClassRule, ...] = (), **classes: ClassConfig) -> Events:
    return Events(Path(replace(config, classes=ClassesConfig(classes={**CLASSES, **classes}, rules=rules)), 0.0))


def running(events: Events) -> list[str]:
    return sorted(permit.service_class for _, permit in events.live)


def waited_for(events: Events) -> list[Reason | None]:
    return [events.path.find(request.id).waited_for for request in events.waiting.values()]


def test_a_class_that_holds_its_share_waits_and_lets_others_pass_for_as_long_as_they_come() -> None:
    config = replace(ONE, queue=QueueConfig(max_overtakes=2))
    events = events_with(config, long=ClassConfig(max_share=0.25, max_wait_s=100.0))
    for _ in range(3):
        events.offer(max_tokens=10, class_hint="long")
    assert running(events) == ["long", "long"]
    assert waited_for(events) == [Reason.CLASS_SHARE]
    for _ in range(12):
        assert isinstance(events.offer(max_tokens=10), Wait), "it goes through the queue, and at once"
        events.settle(len(events.live) - 1, Outcome.OK)
    assert len(events.waiting) == 1
    events.settle(0, Outcome.OK)
    assert not events.waiting
    events.finish()


def test_a_long_request_that_others_passed_too_often_does_not_block_them_when_only_its_share_is_in_its_way() -> None:
    config = replace(ONE, replicas=(replica_config("a1", kv_tokens=2048),), queue=QueueConfig(max_overtakes=1))
    events = events_with(config, long=ClassConfig(max_share=0.5, max_wait_s=100.0))
    events.offer(prompt_tokens=700, max_tokens=60, class_hint="long")
    events.offer(prompt_tokens=1000, max_tokens=10)
    events.offer(prompt_tokens=600, max_tokens=10, class_hint="long")
    assert waited_for(events) == [Reason.SLOTS]
    events.offer(prompt_tokens=10, max_tokens=10)
    assert running(events) == ["interactive", "interactive", "long"], "it was passed as often as may be"
    events.settle(1, Outcome.OK)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    assert running(events) == ["interactive", "interactive", "long"]
    events.finish()


def test_what_is_kept_for_a_class_is_lent_to_nobody() -> None:
    events = events_with(interactive=ClassConfig(floor=0.5), batch=ClassConfig(max_wait_s=60.0))
    for _ in range(8):
        events.offer(max_tokens=10, class_hint="batch")
    assert running(events) == ["batch"] * 4
    assert waited_for(events)[0] is Reason.CLASS_SHARE
    for _ in range(4):
        events.offer(max_tokens=10)
    assert running(events) == ["batch"] * 4 + ["interactive"] * 4
    events.finish()


def test_the_share_counts_memory_as_well_as_sequences() -> None:
    events = events_with(long=ClassConfig(max_share=0.5))
    events.offer(prompt_tokens=100, max_tokens=3700, class_hint="long")
    events.offer(prompt_tokens=100, max_tokens=400, class_hint="long")
    assert waited_for(events) == [Reason.CLASS_SHARE], "15 of 32 slots, and 2 more"
    events.offer(prompt_tokens=100, max_tokens=400)
    assert running(events) == ["interactive", "long"]
    events.finish()


def test_a_replica_that_tells_no_size_is_shared_by_its_adaptive_limit() -> None:
    replicas = (
        replace(replica_config("a1"), capacity=replace(ONE.replicas[0].capacity, kv_tokens=None, sequences=None)),
    )
    events = events_with(replace(ONE, replicas=replicas), batch=ClassConfig(max_share=0.25))
    for _ in range(20):
        events.offer(max_tokens=10, class_hint="batch")
    limit = events.path.upstreams["a"].replicas[0].limit
    assert running(events) == ["batch"] * int(limit.value * 0.25)
    unlimited = replace(events.path.config, limit=replace(ONE.limit, enabled=False))
    events.apply(unlimited)
    assert running(events) == ["batch"] * 20, "nothing is known that it could be a share of"
    events.finish()


def test_batch_goes_only_while_nobody_else_waits() -> None:
    events = events_with(replace(ONE, replicas=(replica_config("a1", sequences=1),)))
    events.offer(max_tokens=10)
    events.offer(max_tokens=10, class_hint="batch")
    for _ in range(3):
        events.offer(max_tokens=10)
    for _ in range(3):
        events.settle(0, Outcome.OK)
        assert running(events) == ["interactive"]
    events.settle(0, Outcome.OK)
    assert running(events) == ["batch"]
    events.finish()


def test_length_counts_only_while_a_burst_lasts() -> None:
    config = replace(ONE, burst=BurstConfig(least_per_s=3.0, calm_s=2.0))
    events = Events(Path(replace(config, classes=ClassesConfig(classify="on_burst", long_threshold_tokens=100)), 0.0))
    for _ in range(3):
        events.offer(prompt_tokens=120, max_tokens=10)
    assert running(events) == ["interactive", "interactive", "long"]
    assert [request.in_burst for request, _ in events.live] == [False, False, True]
    events.pass_time(10.0)
    events.offer(prompt_tokens=120, max_tokens=10)
    assert running(events)[-1] == "long"
    assert running(events).count("interactive") == 3
    assert not events.path.upstreams["a"].burst.is_on
    events.finish()


def test_a_rule_decides_and_the_class_stands_in_record_and_permit() -> None:
    events = events_with(rules=(ClassRule(service_class="batch", tenant="crawler"),))
    events.offer(max_tokens=10, tenant="crawler")
    (request, permit), record = events.live[0], events.path.find(1)
    assert (request.service_class, permit.service_class, record.service_class) == ("batch",) * 3
    events.finish()


def test_a_model_runs_eight_tenths_of_its_knee_over_all_its_replicas() -> None:
    replicas = (replica_config("a1"), replica_config("a2"), replica_config("b1", "b"))
    models = ModelsConfig(named={"a": ModelConfig(knee=5)})
    events = Events(Path(PathConfig(replicas=replicas, models=models), 0.0))
    for _ in range(6):
        events.offer(max_tokens=10)
    assert len(events.live) == 4
    assert waited_for(events) == [Reason.MODEL_CONCURRENCY, Reason.BEHIND_OTHERS]
    assert isinstance(events.offer(upstream="b", max_tokens=10), Admit)
    events.settle(0, Outcome.OK)
    assert len(events.live) == 5
    events.finish()


def test_a_request_wider_than_the_whole_concurrency_goes_alone() -> None:
    models = ModelsConfig(named={"a": ModelConfig(knee=2)})
    events = Events(Path(replace(ONE, models=models), 0.0))
    assert isinstance(events.offer(max_tokens=10, sequences=4), Admit)
    assert isinstance(events.offer(max_tokens=10), Wait)
    events.finish()


def test_a_model_may_let_its_long_requests_wait_longer() -> None:
    models = ModelsConfig(named={"a": ModelConfig(max_wait_s={"long": 50.0})})
    events = Events(Path(replace(ONE, replicas=(replica_config("a1"), replica_config("b1", "b")), models=models), 0.0))
    for upstream in ("a", "b"):
        events.observe(f"{upstream}1", ready=False)
        events.offer(upstream=upstream, prompt_tokens=2000, max_tokens=10)
    events.pass_time(4.0)
    assert [request.upstream for request in events.waiting.values()] == ["a"], "class long waits 3 s elsewhere"
    events.pass_time(47.0)
    assert not events.waiting
    assert [record.refused for record in events.records] == [Reason.NO_REPLICA] * 2


def test_what_an_answer_grows_by_counts_against_its_class() -> None:
    events = events_with(replace(ONE, slots=SlotsConfig(mode="learned")), batch=ClassConfig(max_share=0.5))
    for _ in range(60):
        events.offer(max_tokens=1000, class_hint="batch")
        events.first_token(0)
        events.settle(0, Outcome.OK, output_tokens=10)
    events.offer(max_tokens=1000, class_hint="batch")
    events.first_token(0)
    shares = events.path.upstreams["a"].replicas[0].shares
    before = shares.slots["batch"]
    events.write(0, 900)
    assert shares.slots["batch"] == events.live[0][1].slots > before
    events.finish()
    assert shares.view() == {"batch": {"sequences": 0, "slots": 0}}


def test_the_prompts_before_a_replica_are_shared_too() -> None:
    """Of 2048 tokens that may wait to be read, a class of a half fills 1024; the rest is for the others."""
    events = events_with(batch=ClassConfig(max_share=0.5, max_wait_s=100.0))
    assert isinstance(events.offer(prompt_tokens=900, max_tokens=10), Admit)
    assert isinstance(events.offer(prompt_tokens=300, max_tokens=10, class_hint="batch"), Wait)
    assert waited_for(events) == [Reason.CLASS_SHARE]
    events.offer(prompt_tokens=300, max_tokens=10)
    assert running(events) == ["interactive", "interactive"]
    events.first_token(0)
    assert running(events) == ["batch", "interactive", "interactive"]
    events.finish()
