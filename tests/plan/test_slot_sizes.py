from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.planned import footprint, traffic
from tidegate.plan.gpus import MIB
from tidegate.plan.slot_sizes import (
    SCHEMA,
    default_max_tokens,
    long_threshold_tokens,
    recommended_slot_tokens,
    report,
    slot_size,
)
from tidegate.plan.traffic import Traffic
from tidegate.simulate.lookalike import lookalike


def conversation() -> Traffic:
    return traffic(*((each.prompt_tokens, each.output_tokens) for each in lookalike("azure-conv", 1)))


def test_a_slot_at_p95_of_1024_tokens_is_67_2_mib() -> None:
    """SPEC Appendix C: 56 MiB × 1.2, and then whole blocks of 16 tokens."""
    found = recommended_slot_tokens(traffic(*[(1000, 24)] * 20))
    exact_mib = 1024 * 57_344 / MIB * 1.2
    assert exact_mib == pytest.approx(67.2)
    assert found == 1232
    assert found * 57_344 / MIB == pytest.approx(exact_mib, abs=16 * 57_344 / MIB)


def test_a_request_of_200_tokens_wastes_most_of_a_256_mib_slot() -> None:
    """SPEC C19: more than 95 %."""
    plan = footprint("qwen2-7b", "A10")
    assert slot_size(traffic((150, 50)), plan.slot_tokens, 0).internal_waste > 0.95


def test_longer_requests_take_several_slots() -> None:
    found = slot_size(traffic((100, 28), (100, 29), (300, 100)), 128, bound_tokens=0)
    assert found.slots_per_request == (1 + 2 + 4) / 3
    assert found.in_one_slot == pytest.approx(1 / 3)
    assert found.internal_waste == pytest.approx(1 - 657 / (7 * 128))


def test_reserving_the_bound_holds_more_than_reserving_what_is_used() -> None:
    found = slot_size(traffic((100, 10), (100, 200)), 10, bound_tokens=50)
    assert (found.slots_per_request, found.bound_slots_per_request) == ((11 + 30) / 2, (15 + 30) / 2)


def test_the_bound_cuts_fewer_than_one_answer_in_a_hundred() -> None:
    found = conversation()
    bound = default_max_tokens(found)
    assert sum(output > bound for output in found.outputs) / len(found.outputs) < 0.01
    assert bound % 64 == 0


def test_the_class_border_leaves_the_longest_twentieth_above_it() -> None:
    found = conversation()
    border = long_threshold_tokens(found)
    assert sum(prompt > border for prompt in found.prompts) / len(found.prompts) <= 0.05


def test_small_slots_hold_more_requests_than_those_of_p95() -> None:
    told = report(conversation(), footprint("qwen2-7b", "A10"))
    by_size = {row["slot_tokens"]: row for row in told["sizes"]}
    rule, small = by_size[told["slot_tokens"]], by_size[told["economical_slot_tokens"]]
    assert small["internal_waste"] <= 0.10 < rule["internal_waste"]
    assert small["concurrent"] > 2 * rule["concurrent"]
    assert told["recommended_max_num_seqs"] == int(small["concurrent"] * 0.8)
    assert told["settings"]["upstreams.<model>.replicas[].slot_tokens"] == told["economical_slot_tokens"]
    assert "the same memory holds" in told["advice"][0]


def test_without_a_model_sizes_are_compared_in_tokens() -> None:
    told = report(traffic(*[(64, 32)] * 50), None)
    assert (told["slot_tokens"], told["economical_slot_tokens"]) == (128, 96)
    assert (told["slots"], told["slot_mib"], told["recommended_max_num_seqs"]) == (None, None, None)


def test_the_rule_stands_where_it_wastes_little() -> None:
    """A tail so long that the slots of the short ones do not matter."""
    told = report(traffic(*[(64, 36)] * 95, *[(12_700, 100)] * 5), None)
    assert (told["slot_tokens"], told["economical_slot_tokens"], told["advice"]) == (128, 128, [])


def test_every_figure_has_its_definition() -> None:
    told = report(conversation(), footprint("qwen2-7b", "A10"))
    defined = {name.removesuffix("[]") for name in SCHEMA}
    assert told.keys() == defined
    for row in told["sizes"]:
        assert [name for name in row if name not in SCHEMA["sizes[]"] and name not in SCHEMA] == []


@given(
    requests=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 2000)), min_size=1, max_size=50),
    slot_tokens=st.integers(1, 6000),
    bound_tokens=st.integers(0, 2000),
)
def test_waste_is_a_share_and_the_bound_never_wastes_less(
    requests: list[tuple[int, int]], slot_tokens: int, bound_tokens: int
) -> None:
    found = slot_size(traffic(*requests), slot_tokens, bound_tokens)
    assert 0 <= found.internal_waste <= found.bound_waste < 1
    assert found.slots_per_request >= 1
