from __future__ import annotations

import pytest

from tidegate.errors import ConfigError
from tidegate.plan.gpus import GIB, MEMORY_MIB, MIB, gpu, gpus


def test_an_a10_of_24_gb_has_22_5_gib() -> None:
    assert gpu("A10").memory_bytes == 23028 * MIB
    assert gpu("A10").memory_bytes / GIB == pytest.approx(22.5, abs=0.02)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a100", "A100-80"),
        ("A100-80GB", "A100-80"),
        ("a100-40gb", "A100-40"),
        ("rtx4090", "RTX 4090"),
        ("h100", "H100"),
    ],
)
def test_names_are_taken_as_people_write_them(name: str, found: str) -> None:
    assert gpu(name).name == found


def test_any_other_gpu_is_named_by_its_memory() -> None:
    assert gpu("12288").memory_bytes == 12 * GIB


def test_an_unknown_gpu_is_answered_with_a_guess_and_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"did you mean A10\?.*in MiB"):
        gpu("A11")
    with pytest.raises(ConfigError, match="known: T4, A10"):
        gpu("quantum")
    with pytest.raises(ConfigError):
        gpu("0")


@pytest.mark.parametrize(
    ("name", "tokens"), [("A10", 2048), ("A100-80", 2048), ("H100", 8192), ("H200", 8192), ("B200", 16384)]
)
def test_prefill_steps_are_as_large_as_vllm_makes_them(name: str, tokens: int) -> None:
    assert gpu(name).prefill_tokens == tokens


def test_gpus_are_listed_from_small_to_large() -> None:
    sizes = [each.memory_bytes for each in gpus()]
    assert sizes == sorted(sizes)
    assert len(sizes) == len(MEMORY_MIB)
