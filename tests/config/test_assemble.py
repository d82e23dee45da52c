from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from tests.config.places import ENGINE, settings_of
from tidegate.config import path_config
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity


def test_no_configuration_gives_the_policies_their_own_defaults(tmp_path: Path) -> None:
    assert path_config(settings_of(tmp_path)) == PathConfig()


def test_every_policy_is_reached_by_a_key(tmp_path: Path) -> None:
    yaml = """\
        upstreams: {chat: {replicas: [{url: http://h:1, bytes_per_token: 7}], limits: {knee: 7}}}
        slots: {default_max_tokens: 7}
        pools: {card: {kv_bytes: 7, groups: {all: {members: [chat], floor: 1}}}}
        shaping: {queue: {max_requests: 7}, margin: {most: 0.8}, long_threshold_tokens: 7, burst: {ratio: 7},
                  pacing: {enabled: true}, giants: {least_tokens: 7}}
        limits: {adaptive: {initial: 7}, prefill: {floor_tokens: 7}}
        tail: {timeouts: {multiplier: 7}, breaker: {probes: 7}, ejections: {base_s: 7}, outliers: {windows: 7},
               watchdog: {stall_s: 7}, health: {window_s: 7}}
        marks: {trigger_count: 7}
        balance: {slow_start_s: 7}
        ladder: {order: [error]}
        retries: {most: 7}
        quota: {max_in_flight: 7}
        tenants: {acme: {weight: 7}}
        """
    changed, default = path_config(settings_of(tmp_path, yaml)), PathConfig()
    assert [
        each.name for each in fields(PathConfig) if getattr(changed, each.name) == getattr(default, each.name)
    ] == []


def test_replicas_carry_what_the_file_knows_of_them(tmp_path: Path) -> None:
    yaml = """\
        upstreams:
          chat:
            replicas:
              - {url: http://h:1, name: big, kv_tokens: 4096, sequences: 9, context_tokens: 2048, abort_grace_s: 5}
              - http://h:2
            engine: embedded
        """
    big, other, started = path_config(settings_of(tmp_path, yaml)).replicas
    assert (big.name, other.name, started.name) == ("big", "chat-1", "chat-embedded")
    assert big.capacity == Capacity(kv_tokens=4096, slot_tokens=256, sequences=9, context_tokens=2048)
    assert (big.abort_grace_s, other.abort_grace_s) == (5, 2)
    assert other.capacity == Capacity()
    assert started.capacity.slots == started.capacity.sequences == 4


def test_shaping_off_is_one_class_and_no_early_refusal(tmp_path: Path) -> None:
    path = path_config(settings_of(tmp_path, "shaping: {enabled: false}"))
    assert path.classes.long_threshold_tokens == sys.maxsize
    assert set(path.classes.classes) == {"interactive", "long"}
    assert (path.margin.least, path.margin.most) == (1, 1)


def test_tail_off_reaches_timeouts_breaker_and_marks(tmp_path: Path) -> None:
    path = path_config(settings_of(tmp_path, "tail: {enabled: false}"))
    assert (path.timeouts.enabled, path.breaker.enabled, path.marks.enabled) == (False, False, False)


def test_dev_mode_leaves_the_slots(tmp_path: Path) -> None:
    path = path_config(settings_of(tmp_path, f"mode: dev\n{ENGINE}"))
    on = [each.name for each in fields(PathConfig) if getattr(getattr(path, each.name), "enabled", False)]
    assert on == ["slots", "retries"]
