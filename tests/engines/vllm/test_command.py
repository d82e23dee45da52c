from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tidegate.engines.vllm.command import VllmCommand, has_flag, is_internal, release
from tidegate.engines.vllm.reservation import Reservation
from tidegate.errors import EngineError

GIB = 2**30


def command(**changed: Any) -> VllmCommand:
    usual: dict[str, Any] = {
        "model": "/models/qwen3-8b",
        "dtype": "bfloat16",
        "served_name": "qwen3-8b",
        "port": 8101,
        "context_tokens": 8192,
        "sequences": 76,
        "kv_bytes": 40 * GIB,
    }
    return VllmCommand(**{**usual, **changed})


def value_of(flag: str, given: VllmCommand) -> str:
    arguments = given.arguments()
    assert arguments.count(flag) == 1
    return arguments[arguments.index(flag) + 1]


def test_the_whole_command_is_said_and_nothing_is_left_to_a_default() -> None:
    assert " ".join(command().arguments()) == (
        "python -m vllm.entrypoints.openai.api_server --model /models/qwen3-8b --served-model-name qwen3-8b "
        "--dtype bfloat16 --host 127.0.0.1 --port 8101 --tensor-parallel-size 1 --shutdown-timeout 30 "
        "--disable-uvicorn-access-log "
        "--max-model-len 8192 --max-num-seqs 76 --kv-cache-memory-bytes 42949672960 --gpu-memory-utilization 0.86 "
        "--enable-prefix-caching --scheduling-policy priority "
        "--scheduler-cls tidegate.engines.vllm.scheduler.AsyncReservingScheduler --additional-config "
        '{"tidegate": {}}'
    )


def test_the_pool_in_blocks_is_one_more_for_vllm() -> None:
    given = command(kv_bytes=None, kv_blocks=80, block_tokens=32, context_tokens=1024, memory_share=None)
    assert value_of("--num-gpu-blocks-override", given) == "81"
    assert value_of("--block-size", given) == "32"
    assert "--gpu-memory-utilization" not in given.arguments()


def test_the_old_name_of_prefix_caching_becomes_its_flag() -> None:
    assert "--no-enable-prefix-caching" in command(prefix_caching=False).arguments()


def test_the_queue_of_the_engine_is_the_second_line() -> None:
    given = command(queued_requests=96, queued_tokens=400_000, default_max_tokens=1024)
    assert value_of("--max-num-queued-reqs", given) == "96"
    assert value_of("--max-num-queued-tokens", given) == "400000"
    assert json.loads(value_of("--override-generation-config", given)) == {"max_new_tokens": 1024}


def test_service_classes_order_the_engine_only_where_they_are_sent() -> None:
    assert value_of("--scheduling-policy", command()) == "priority"
    assert value_of("--scheduling-policy", command(orders_by_priority=False)) == "fcfs"


def test_the_reservation_goes_along_as_json() -> None:
    reservation = Reservation(lengths="learned", quantile=0.6)
    given = command(reservation=reservation, is_asynchronous=False)
    assert value_of("--scheduler-cls", given).endswith(".ReservingScheduler")
    assert Reservation.of(json.loads(value_of("--additional-config", given))["tidegate"]) == reservation
    assert "--scheduler-cls" not in command(reservation=None).arguments()


def test_an_old_vllm_is_told_not_to_log_requests_and_a_later_one_would_not_start_with_that() -> None:
    assert "--disable-log-requests" not in command().arguments()
    old = command(version="0.9.2", reservation=None, kv_bytes=None, kv_blocks=1000)
    assert "--disable-log-requests" in old.arguments()


def test_an_untested_version_is_refused_or_runs_as_it_is_and_says_so() -> None:
    with pytest.raises(EngineError, match="not tested with vLLM"):
        command(version="0.99.0")
    fallback = command(version="0.99.0", reservation=Reservation(unknown_version="native"))
    assert "--scheduler-cls" not in fallback.arguments()
    assert fallback.warning is not None
    assert command().warning is None
    assert command(reservation=None).warning is None


def test_more_flags_come_last_so_that_they_win() -> None:
    assert command(extra=("--watermark", "0.1")).arguments()[-2:] == ("--watermark", "0.1")
    given = command(pipeline_parallel=2, tensor_parallel=4, can_sleep=True, batch_tokens=2048)
    assert value_of("--pipeline-parallel-size", given) == "2"
    assert value_of("--max-num-batched-tokens", given) == "2048"
    assert "--enable-sleep-mode" in given.arguments()


def test_keys_and_cards_are_not_in_the_process_list() -> None:
    given = command(api_key="secret", devices=("GPU-1", "GPU-2"), cpus="8-15")
    assert "secret" not in " ".join(given.arguments())
    assert "secret" not in repr(given)
    assert given.environment()["VLLM_API_KEY"] == "secret"
    assert given.environment()["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert given.arguments()[:3] == ("taskset", "-c", "8-15")
    assert given.environment()["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dtype": "auto"}, "dtype must be one of bfloat16"),
        ({"kv_bytes": None}, "give the KV pool once"),
        ({"kv_blocks": 80}, "give the KV pool once"),
        ({"kv_bytes": None, "kv_blocks": 80, "block_tokens": 32}, "hold 2560 tokens, less than one context of 8192"),
        ({"host": "0.0.0.0"}, "open to others"),
        ({"host": "203.0.114.7"}, "open to others"),
        ({"host": "engine.example.org"}, "open to others"),
        (
            {"version": "0.31.0", "reservation": None, "queued_requests": 9},
            "not known to have --max-num-queued-reqs",
        ),
        ({"version": "0.9.2", "reservation": None}, "not known to have --kv-cache-memory-bytes"),
    ],
)
def test_what_could_not_start_or_would_not_hold_is_refused_in_words(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        command(**changed)


def test_only_addresses_that_others_cannot_reach_are_internal() -> None:
    assert all(map(is_internal, ("127.0.0.1", "::1", "localhost", "10.0.3.4", "192.168.1.9")))
    assert not any(map(is_internal, ("0.0.0.0", "::", "203.0.114.7", "example.org")))


def test_a_build_is_the_release_it_is_made_of() -> None:
    assert release("0.32.0+cpu") == (0, 32, 0)
    assert release("0.33.1rc2.dev5") == (0, 33)
    assert has_flag("--max-num-queued-reqs", "0.32.0+cpu")
    assert replace(command(), version="0.32.0+cpu").warning is None
