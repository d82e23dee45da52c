from __future__ import annotations

from collections import Counter
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.made_samples import figures_of, phase, plan, played, sample, steadily
from tidegate.load.client_outcome import ERRORS, ClientOutcome
from tidegate.load.gap_counts import GapCounts
from tidegate.load.measures import measure
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Objective
from tidegate.load.sample import Sample


def anything() -> st.SearchStrategy[list[Sample]]:
    one = st.builds(
        sample,
        st.floats(0, 99),
        st.floats(0.01, 30),
        st.sampled_from(ClientOutcome),
        label=st.sampled_from(["chat", "rag"]),
        tenant=st.sampled_from(["", "gold", "free"]),
        queue_s=st.none() | st.floats(0, 5),
        prompt_tokens=st.integers(0, 10_000),
    )
    return st.lists(one, min_size=1, max_size=60)


def test_exact_figures_of_a_known_phase() -> None:
    found = figures_of(steadily(100, lambda k: (k + 1) / 10))
    assert found.all.e2e is not None
    assert found.all.ttft is not None
    assert found.all.tpot is not None
    assert (found.all.e2e.p50, found.all.e2e.p95, found.all.e2e.p99) == pytest.approx((5.0, 9.5, 9.9))
    assert found.all.e2e.jitter == pytest.approx(9.9 / 5.0)
    assert found.all.ttft.p50 == pytest.approx(5.0 / 4)
    assert found.all.tpot.most == pytest.approx(10.0 * 0.75 / 4), "(last - first) / (tokens - 1)"
    assert found.due_rate_per_s == found.sent_rate_per_s == 1.0
    # Due at 90 + k, it takes (k + 91) / 10: those after 90.9 end beyond the phase.
    assert found.answered_per_s == pytest.approx(0.91)
    assert found.all.output_tokens == 500
    assert found.token_sources == {"usage": 100}
    assert found.all.counted_share == 1.0


def test_each_outcome_is_counted_apart_and_rates_are_of_what_was_sent() -> None:
    outcomes = [ClientOutcome.OK] * 90 + [
        ClientOutcome.DEGRADED,
        ClientOutcome.EXPECTED,
        ClientOutcome.UNEXPECTED,
        ClientOutcome.SHED,
        ClientOutcome.TIMEOUT,
        ClientOutcome.ABNORMAL,
        ClientOutcome.UNSENT,
    ]
    samples = [sample(k, 1.0, outcome) for k, outcome in enumerate(outcomes)]
    samples[93].status, samples[95].code = 503, "output_empty"
    found = figures_of(samples)
    part = found.all
    assert part.outcomes == {str(name.value): count for name, count in Counter(outcomes).items()}
    asked = 90 + 5
    assert part.error_rate == pytest.approx(3 / asked), "unexpected, timeout, abnormal"
    assert part.timeout_rate == part.shed_rate == part.degraded_rate == pytest.approx(1 / asked)
    assert part.availability == pytest.approx(91 / asked), "degraded is an answer; shed and empty are none"
    assert part.goodput_share == pytest.approx(90 / (asked - 1)), "a lesser answer is not good"
    assert found.sent_rate_per_s == pytest.approx(96 / 100)
    assert found.codes == {"expected": 1, "unexpected": 1, "503": 1, "timeout": 1, "output_empty": 1}


def test_an_answer_is_late_by_its_tenants_objective_then_its_labels_then_the_plans() -> None:
    objectives = {"gold": Objective(e2e_s=0.5), "rag": Objective(ttft_s=0.1), "slow": Objective(tpot_s=0.01)}
    made = plan(objective=Objective(e2e_s=2.0), objectives=objectives)
    samples = [
        sample(0, 1.0, tenant="gold"),
        sample(0, 1.0, label="rag"),
        sample(0, 1.0, label="slow"),
        sample(0, 1.0, tenant="free"),
        sample(0, 1.0, sent_at=0.0, label="rag", is_stream=False, first_at=0.05),
    ]
    found = figures_of(samples, made=made)
    assert found.all.late == 3
    assert found.tenants["gold"].late == 1
    assert found.tenants["free"].late == 0
    assert found.all.goodput_per_s == pytest.approx(2 / 100)


def test_lateness_counts_from_when_it_was_due_not_from_when_the_generator_sent_it() -> None:
    made = plan(objective=Objective(e2e_s=1.5, ttft_s=1.2))
    found = figures_of([sample(0, 2.0, sent_at=1.0, first_at=1.1)], made=made)
    assert found.all.late == 1
    assert found.all.e2e is not None
    assert found.all.scheduled_e2e is not None
    assert (found.all.e2e.most, found.all.scheduled_e2e.most) == (1.0, 2.0)


def test_whole_answers_have_no_ttft() -> None:
    found = figures_of([sample(0, 1.0), sample(0, 8.0, is_stream=False, first_at=8.0, last_at=8.0)])
    assert found.all.ttft is not None
    assert found.all.ttft.count == 1


def test_queue_time_is_split_from_model_time_where_the_target_tells_it() -> None:
    found = figures_of([sample(0, 3.0, queue_s=2.0), sample(0, 1.0)])
    assert found.all.queue is not None
    assert found.all.model_time is not None
    assert (found.all.queue.most, found.all.model_time.most, found.all.model_time.count) == (2.0, 1.0, 1)
    assert figures_of([sample()]).all.queue is None


def test_tokens_that_come_after_the_phase_do_not_count_as_its_throughput() -> None:
    of = phase(duration_s=10.0)
    half = sample(8.0, 4.0, first_at=8.0, output_tokens=100)
    late = sample(9.9, 4.0, output_tokens=100)
    whole = sample(9.9, 4.0, output_tokens=100, is_stream=False)
    found = figures_of([sample(0, 1.0, output_tokens=10), half, late, whole], of)
    assert found.output_tokens_per_s == pytest.approx((10 + 50) / 10)
    assert found.answered_per_s == pytest.approx(0.1)


def test_the_spread_of_p95_is_over_slices_with_answers_enough() -> None:
    # Ten slices of 10 s: P95 is 1 s in five of them, 3 s in the others.
    samples = steadily(400, lambda k: 1.0 if (k // 40) % 2 else 3.0)
    found = figures_of(samples)
    assert found.slice_s == 10.0
    assert found.all.p95_std_s == pytest.approx(1.0)
    assert figures_of(samples[:30]).all.p95_std_s is None


def test_slices_are_wider_where_answers_are_few() -> None:
    found = figures_of(steadily(120, lambda k: 1.0, duration_s=600.0), phase(duration_s=600.0))
    assert found.slice_s == 300.0
    assert found.moment_s == 5.0


def test_moments_cover_the_phase_and_add_up() -> None:
    outcomes = [ClientOutcome.OK, ClientOutcome.SHED, ClientOutcome.ERROR, ClientOutcome.DEGRADED, ClientOutcome.UNSENT]
    found = figures_of([sample(k % 50, 1.0, outcomes[k % 5]) for k in range(100)])
    assert sum(moment.due for moment in found.moments) == 100
    assert sum(moment.sent for moment in found.moments) == 80
    assert sum(moment.answered for moment in found.moments) == 40
    assert sum(moment.shed + moment.errors + moment.degraded for moment in found.moments) == 60
    assert [moment.at_s for moment in found.moments][:2] == [0.5, 1.5]
    assert found.moments[1].e2e_p50_s is None, "a shed second has no latency"


def spiked(worse_s: float, *, shed: bool = False) -> PhaseFigures:
    """Ten a second; a spike from 20 to 30 s, and for ``worse_s`` after it latency or refusals."""
    of = phase(spike=(20.0, 30.0))

    def one(k: int) -> Sample:
        due_s = k / 10
        is_bad = 20 <= due_s < 30 + worse_s
        return sample(
            due_s,
            5.0 if is_bad and not shed else 1.0 + k % 3 / 50,
            ClientOutcome.SHED if is_bad and shed else ClientOutcome.OK,
        )

    return figures_of([one(k) for k in range(1000)], of)


@pytest.mark.parametrize("shed", [False, True])
def test_recovery_is_the_time_until_those_who_come_are_served_as_before_the_spike(shed: bool) -> None:
    assert spiked(20.0, shed=shed).recovered_in_s == pytest.approx(20.0, abs=2.0)
    assert spiked(0.0, shed=shed).recovered_in_s == 0.0
    assert spiked(70.0, shed=shed).recovered_in_s is None
    assert spiked(70.0).watched_after_spike_s == 70.0


def test_no_spike_or_nothing_before_it_has_no_recovery() -> None:
    assert figures_of([sample()]).recovered_in_s is None
    assert figures_of([sample(50.0)], phase(spike=(10.0, 20.0))).recovered_in_s is None


def test_lengths_of_prompts_are_told_apart() -> None:
    samples = [sample(k, 1.0 if k % 2 else 4.0, prompt_tokens=100 if k % 2 else 1000) for k in range(40)]
    found = figures_of([*samples, sample(0, 9.0, prompt_tokens=9000), sample(0, 1.0, prompt_tokens=0)])
    assert [(each.tokens, each.count, each.e2e_p50_s) for each in found.lengths] == [(100, 20, 1.0), (1000, 20, 4.0)]
    assert found.lengths[0].ttft_p95_s == pytest.approx(0.25)


def test_gaps_of_all_turns_are_one_distribution() -> None:
    first, second = GapCounts(), GapCounts()
    for _ in range(99):
        first.add(0.01)
    second.add(1.0)
    turns = [played([sample()], gaps=first, token_gaps=first), played([sample()], gaps=second)]
    found = measure(phase(), turns, plan())
    assert found.inter_chunk["p50"] == pytest.approx(0.01, rel=0.02)
    assert found.inter_chunk["p999"] == pytest.approx(1.0, rel=0.02)
    assert found.inter_token["p999"] == pytest.approx(0.01, rel=0.02)
    assert sum(count for _, count in found.gap_buckets) == 100


def test_the_generators_lag_is_told_of_open_loops_only() -> None:
    late = [sample(0.0, 2.0, sent_at=1.0), sample(0.0, 2.0, ClientOutcome.UNSENT)]
    assert (lag := figures_of(late).lag) is not None
    assert (lag.count, lag.most) == (1, 1.0)
    assert figures_of(late, phase(users=3)).lag is None
    told = measure(phase(), [played(late, lags_s=[0.25], cpu_s=2.0, busiest_share=0.5)], plan())
    assert told.lag is not None
    assert (told.lag.most, told.generator_cpu_s, told.generator_busiest_share) == (0.25, 2.0, 0.5)


def test_a_generator_that_was_too_busy_makes_the_phase_invalid_once() -> None:
    turns = [played([sample()], busiest_share=0.99), played([sample()], busiest_share=0.99)]
    assert len(measure(phase(), turns, plan()).invalid) == 1


def test_turns_without_a_length_of_their_own_share_the_phases() -> None:
    turns = [played([sample()], sending_s=0.0) for _ in range(4)]
    assert measure(phase(), turns, plan()).duration_s == pytest.approx(100.0)
    counted = phase(count=1, users=1)
    assert measure(counted, [played([sample(0, 2.0)], sending_s=0.0)], plan()).duration_s == 2.0


def test_goodput_of_turns_counts_what_came_within_its_own_turn() -> None:
    turns = [
        played([sample(0.0, 1.0), sample(9.5, 1.0)], sending_s=10.0),
        played([sample(20.0, 1.0), sample(29.5, 1.0)], began_s=20.0, sending_s=10.0),
    ]
    assert measure(phase(duration_s=20.0), turns, plan()).all.goodput_per_s == pytest.approx(2 / 20)


@settings(max_examples=40)
@given(anything())
def test_every_request_has_one_outcome_and_percentiles_rise(samples: list[Sample]) -> None:
    found = figures_of(samples)
    parts = [found.all, *found.labels.values(), *found.tenants.values()]
    assert sum(part.due for part in found.labels.values()) == len(samples)
    for part in parts:
        assert sum(part.outcomes.values()) == part.due
        errors = sum(part.outcomes.get(each.value, 0) for each in ERRORS)
        answered = part.outcomes.get("ok", 0) + part.outcomes.get("degraded", 0)
        assert part.late <= answered
        assert 0 <= part.error_rate <= 1
        assert 0 <= part.availability <= 1 - part.error_rate - part.shed_rate + 1e-9
        assert (errors == 0) is (part.error_rate == 0)
        for each in (part.ttft, part.tpot, part.e2e, part.scheduled_e2e, part.worst_gap, part.queue, part.model_time):
            if each is not None:
                assert each.least <= each.p50 <= each.p90 <= each.p95 <= each.p99 <= each.p999 <= each.most
                assert each.std <= each.most - each.least + 1e-9
    assert found.all.goodput_per_s <= found.answered_per_s + 1e-9


@settings(max_examples=40)
@given(anything(), st.integers(1, 59))
def test_turns_merged_measure_as_all_their_samples_in_one(samples: list[Sample], at: int) -> None:
    whole = measure(phase(), [played(samples)], plan())
    turns = measure(phase(), [played(samples[:at], sending_s=40.0), played(samples[at:], sending_s=60.0)], plan())
    assert turns.duration_s == whole.duration_s
    for name in ("due", "outcomes", "late", "error_rate", "ttft", "e2e", "scheduled_e2e", "queue", "p95_std_s"):
        assert getattr(turns.all, name) == getattr(whole.all, name), name
    assert turns.labels["chat" if "chat" in turns.labels else "rag"].due >= 1
    assert (turns.codes, turns.lengths, turns.token_sources) == (whole.codes, whole.lengths, whole.token_sources)


def test_measuring_takes_a_time_that_grows_with_the_samples_alone() -> None:
    samples = steadily(10_000, lambda k: 1.0 + k % 97 / 50, tenant="gold")
    for each in samples[::2]:
        each.label = "rag"
    began = process_time()
    assert figures_of(samples).all.due == 10_000
    assert process_time() - began < 4, "a million would take minutes"
