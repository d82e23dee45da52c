"""What each class may hold of one replica."""

from __future__ import annotations

import pytest

from tidegate.policy.class_shares import ClassShares
from tidegate.policy.classes import ClassConfig
from tidegate.policy.permit import Permit


def permit(service_class: str, sequences: int = 1, slots: int = 1) -> Permit:
    return Permit(1, 1, "m", "r", service_class, slots, sequences, 1, 1, 0, 0.0, 1.0, 1.0, 1.0, 1.0, ("m", "i", 1))


def held_by(shares: ClassShares, service_class: str, sequences: int) -> None:
    shares.take(permit(service_class), sequences, 10 * sequences)


def test_a_class_holds_no_more_than_its_share_but_one_request_always() -> None:
    shares = ClassShares({"long": ClassConfig(max_share=0.5), "interactive": ClassConfig()})
    assert shares.concerns("long")
    assert not shares.concerns("interactive")
    assert not shares.bars("long", 9, 0, 10, in_slots=False), "the first may be of any size"
    held_by(shares, "long", 4)
    assert not shares.bars("long", 1, 4, 10, in_slots=False)
    assert shares.bars("long", 2, 4, 10, in_slots=False)
    assert not shares.bars("long", 10, 40, 100, in_slots=True)
    assert shares.bars("long", 11, 40, 100, in_slots=True)
    assert not shares.bars("interactive", 6, 4, 10, in_slots=False)


def test_a_floor_is_kept_free_for_its_class_as_far_as_it_is_not_used() -> None:
    shares = ClassShares({"interactive": ClassConfig(floor=0.3), "batch": ClassConfig()})
    assert shares.concerns("batch")
    held_by(shares, "batch", 6)
    assert not shares.bars("batch", 1, 6, 10, in_slots=False)
    assert shares.bars("batch", 2, 6, 10, in_slots=False)
    assert not shares.bars("interactive", 4, 6, 10, in_slots=False)
    held_by(shares, "interactive", 2)
    assert not shares.bars("batch", 1, 8, 10, in_slots=False)
    assert shares.bars("batch", 2, 8, 10, in_slots=False)
    held_by(shares, "interactive", 1)
    assert not shares.bars("batch", 1, 9, 10, in_slots=False)


def test_an_empty_replica_admits_whatever_is_kept() -> None:
    shares = ClassShares({"interactive": ClassConfig(floor=0.3), "batch": ClassConfig(max_share=0.5)})
    assert not shares.bars("batch", 10, 0, 10, in_slots=False)


def test_classes_without_shares_are_not_counted() -> None:
    shares = ClassShares({"interactive": ClassConfig()})
    held_by(shares, "interactive", 3)
    assert not shares.is_active
    assert shares.view() == {}


def test_other_shares_count_what_runs_anew() -> None:
    shares = ClassShares({})
    running = (permit("long", 2, 7), permit("long", 1, 3), permit("interactive", 1, 1))
    shares.reconfigure({"long": ClassConfig(max_share=0.5), "interactive": ClassConfig()}, running)
    assert shares.is_active
    assert shares.view() == {"long": {"sequences": 3, "slots": 10}}
    shares.take(running[0], -2, -7)
    assert shares.view() == {"long": {"sequences": 1, "slots": 3}}
    shares.reconfigure({}, running)
    assert not shares.is_active


@pytest.mark.parametrize("in_slots", [True, False])
def test_nothing_is_barred_where_nothing_is_configured(in_slots: bool) -> None:
    assert not ClassShares({}).bars("any", 100, 100, 10, in_slots=in_slots)
