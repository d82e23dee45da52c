"""Who is offered next."""

from __future__ import annotations

import pytest

from tidegate.policy.parking import Parking


def test_tenants_take_turns_by_how_many_they_have_offered() -> None:
    parking: Parking[str] = Parking()
    for number in range(3):
        parking.park("many", f"m{number}")
    assert [parking.take(0.0), parking.take(0.0)] == ["m0", "m1"]
    parking.park("few", "f0")
    assert [parking.take(0.0), parking.take(0.0), parking.take(0.0)] == ["f0", "m2", None]
    for tenant in ("many", "many", "many", "few"):
        parking.over(tenant)
    assert not parking.offered


def test_what_may_come_back_later_goes_first_then() -> None:
    parking: Parking[str] = Parking()
    parking.park_until("a", "late", 5.0)
    parking.park_until("a", "later", 7.0)
    parking.park("a", "new")
    parking.park("a", "newer")
    assert len(parking) == 4
    assert parking.take(4.9) == "new"
    assert [parking.take(5.0), parking.take(5.0), parking.take(5.0)] == ["late", "newer", None]
    assert parking.take(7.0) == "later"
    assert len(parking) == 0


def test_one_that_is_no_longer_wanted_is_dropped_wherever_it_is() -> None:
    parking: Parking[str] = Parking()
    for item in ("1", "2"):
        parking.park("a", item)
    parking.park_until("a", "3", 9.0)
    parking.park_until("a", "4", 8.0)
    parking.drop("a", "1")
    parking.drop("a", "3")
    assert parking.take(10.0) == "4"
    parking.drop("a", "2")
    assert len(parking) == 0
    with pytest.raises(ValueError, match="no such job"):
        parking.drop("a", "2")
