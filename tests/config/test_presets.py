"""Sets of defaults that lie below everything that anybody wrote."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.config.places import ENGINE, problems_of, settings_of
from tidegate.config.assemble import path_config
from tidegate.config.origin import Kind
from tidegate.config.presets import PRESETS
from tidegate.config.settings import Settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_of_a_preset_reaches_its_key_and_says_where_it_is_from(tmp_path: Path, name: str) -> None:
    settings = settings_of(tmp_path, f"preset: {name}\n{ENGINE}")
    assert settings.warnings == ()
    for path in PRESETS[name]:
        origin = settings.origin(path)
        assert (origin.kind, origin.place()) == (Kind.PRESET, f"preset {name}")
    assert path_config(settings) != path_config(settings_of(tmp_path, ENGINE))


def test_every_preset_can_be_named() -> None:
    assert set(get_args(get_args(Settings.model_fields["preset"].annotation)[0])) == PRESETS.keys()


def test_customer_service_is_what_the_source_says(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f"preset: customer-service\n{ENGINE}")
    shaping = settings.shaping
    assert (shaping.queue.max_requests, shaping.long_threshold_tokens) == (5000, 512)
    assert shaping.gpu_utilization_high_percent == 75
    assert path_config(settings).pacing.high_load == 0.75


def test_a_small_batch_is_of_eight_to_thirty_two(tmp_path: Path) -> None:
    limit = path_config(settings_of(tmp_path, f"preset: low-latency-batch\n{ENGINE}")).limit
    assert (limit.minimum, limit.maximum) == (8, 32)


def test_whatever_is_written_wins_over_a_preset(tmp_path: Path) -> None:
    yaml = f"""\
preset: customer-service
{ENGINE}
shaping: {{queue: {{max_requests: 7}}}}
classes: {{long: {{weight: 3}}}}
"""
    env = {"VOLC_PRIORITY_THRESHOLD": "700"}
    settings = settings_of(tmp_path, yaml, env)
    assert settings.shaping.queue.max_requests == 7
    assert settings.shaping.long_threshold_tokens == 700
    assert (settings.classes["long"].weight, settings.classes["long"].max_share) == (3, 0.5)
    assert settings.classes["batch"].max_wait_s == 60


def test_a_preset_may_be_named_by_a_variable_or_a_flag(tmp_path: Path) -> None:
    by_variable = settings_of(tmp_path, ENGINE, {"TIDEGATE__PRESET": "offline"})
    by_flag = settings_of(tmp_path, ENGINE, overrides={("preset",): "offline"})
    assert by_variable.classes["batch"].max_wait_s == by_flag.classes["batch"].max_wait_s == 600


def test_an_unknown_preset_and_mistakes_around_one_are_told_together(tmp_path: Path) -> None:
    found = problems_of(tmp_path, f"preset: custmer-service\n{ENGINE}shaping: 5\n")
    assert len(found) == 2
    assert 'did you mean "customer-service"?' in found[0]
    found = problems_of(tmp_path, f"preset: customer-service\n{ENGINE}shaping: {{queue: 5}}\nclasses: 1\n")
    assert [line.split(" ")[1] for line in found] == ["shaping.queue:", "classes:"]
    assert problems_of(tmp_path, f"preset: [offline]\n{ENGINE}") != []


def test_pacing_is_configured_and_off_by_itself(tmp_path: Path) -> None:
    assert not path_config(settings_of(tmp_path, ENGINE)).pacing.enabled
    yaml = f"{ENGINE}shaping: {{pacing: {{enabled: true, idle_window_s: 0.02, low_load_percent: 50}}}}\n"
    pacing = path_config(settings_of(tmp_path, yaml, {"VOLC_GPU_UTILIZATION_HIGH": "70"})).pacing
    assert (pacing.enabled, pacing.idle_window_s, pacing.busy_window_s) == (True, 0.02, 0.003)
    assert (pacing.low_load, pacing.high_load) == (0.5, 0.7)
    off = settings_of(tmp_path, f"{yaml}mode: dev\n")
    assert not path_config(off).pacing.enabled


def test_the_two_loads_of_pacing_are_in_order_where_it_is_on(tmp_path: Path) -> None:
    yaml = f"{ENGINE}shaping: {{gpu_utilization_high_percent: 60, pacing: {{enabled: true}}}}\n"
    (told,) = problems_of(tmp_path, yaml)
    assert "must be below shaping.gpu_utilization_high_percent (60), got 60" in told
    settings = settings_of(tmp_path, f"{ENGINE}shaping: {{gpu_utilization_high_percent: 1}}\n")
    assert "no effect while shaping.pacing is off" in settings.warnings[0]
    assert path_config(settings).pacing.low_load == 0.0
