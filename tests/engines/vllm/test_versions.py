from __future__ import annotations

from tidegate.engines.vllm.versions import TESTED, is_tested, why_not


def test_a_build_of_a_tested_release_is_tested() -> None:
    assert is_tested(TESTED[0])
    assert is_tested(f"{TESTED[0]}+cpu")
    assert why_not(TESTED[0], "refuse") is None


def test_an_unknown_version_is_refused_with_what_to_do() -> None:
    words = why_not("0.99.1", "refuse")
    assert words is not None
    assert "0.99.1" in words
    assert "unknown_version to native" in words


def test_the_fallback_is_loud() -> None:
    words = why_not("0.99.1", "native")
    assert words is not None
    assert "NOTHING IS RESERVED" in words
