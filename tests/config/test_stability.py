from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import problems_of, settings_of


def stability(folder: Path, text: str) -> None:
    (folder / "config").mkdir()
    (folder / "config" / "stability.json").write_text(text)


def test_the_described_file_is_accepted(tmp_path: Path) -> None:
    stability(
        tmp_path,
        '{"tail_latency": {"enabled": false, "base_multiplier": 3, "window_seconds": 60, "trigger_count": 5,'
        ' "degrade_action": "cache_fallback"}, "other_object": {"x": 1}}',
    )
    settings = settings_of(tmp_path)
    assert settings.tail.enabled is False
    assert [rung.value for rung in settings.ladder.order] == ["cache", "error"]
    assert settings.origin(("marks", "window_s")).written_as == "tail_latency.window_seconds"


def test_faults_are_told_under_the_names_it_uses(tmp_path: Path) -> None:
    stability(
        tmp_path,
        '{"tail_latency": {\n "base_multiplier": 1,\n "window_second": 60,\n "trigger_count": 0,\n'
        ' "degrade_action": "cache_falback"}}',
    )
    told = """\
config/stability.json:2:21: tail_latency.base_multiplier: must be more than 1.0, got 1
config/stability.json:3:2: tail_latency.window_second: unknown key (did you mean "window_seconds"?)
config/stability.json:4:19: tail_latency.trigger_count: must be at least 1, got 0
config/stability.json:5:20: tail_latency.degrade_action: must be one of cache_fallback, light_model, error_response, \
or a list of them in order, got 'cache_falback' (did you mean "cache_fallback"?)
"""
    assert problems_of(tmp_path) == told.splitlines()


@pytest.mark.parametrize(
    ("action", "order"),
    [
        ('"light_model"', ["light_model", "error"]),
        ('["cache_fallback", "light_model"]', ["cache", "light_model", "error"]),
        ('["light_model", "error_response"]', ["light_model", "error"]),
        ('"error_response"', ["error"]),
    ],
)
def test_an_action_or_several_in_order_are_rungs_of_the_ladder(tmp_path: Path, action: str, order: list[str]) -> None:
    stability(tmp_path, f'{{"tail_latency": {{"degrade_action": {action}, "light_model": "small"}}}}')
    yaml = "upstreams: {chat: {replicas: [http://h:1]}, small: {replicas: [http://h:2]}}"
    ladder = settings_of(tmp_path, yaml).ladder
    assert ([rung.value for rung in ladder.order], ladder.light_model) == (order, "small")


@pytest.mark.parametrize(
    "text", ['{"tail_latency": 3}', '{"tail_latency": {', '{"tail_latency": {"degrade_action": []}}']
)
def test_what_is_no_such_object_is_a_problem(tmp_path: Path, text: str) -> None:
    stability(tmp_path, f'{{"tail_latency": {text}}}')
    (problem,) = problems_of(tmp_path)
    assert problem.startswith("config/stability.json:1:")


def test_a_file_without_that_object_changes_nothing(tmp_path: Path) -> None:
    stability(tmp_path, "{}")
    assert settings_of(tmp_path).tail.enabled is True
