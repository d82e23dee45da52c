from __future__ import annotations

from fractions import Fraction

import pytest

from tidegate.errors import ConfigError
from tidegate.plan.precision import TENSOR_TYPES, kv_bits, weight_bits, weight_bytes


@pytest.mark.parametrize(("dtype", "giga_bytes"), [("fp16", 14), ("int8", 7), ("int4", 3.5)])
def test_seven_billion_weights_take_what_appendix_c_says(dtype: str, giga_bytes: float) -> None:
    assert weight_bytes(7_000_000_000, dtype) == giga_bytes * 1e9


def test_four_bit_formats_pay_for_their_scales() -> None:
    assert float(weight_bits("awq")) == pytest.approx(4.156, abs=0.001)
    assert weight_bits("mxfp4") == Fraction(17, 4)
    assert weight_bits("FP8") == 8


def test_llama_cpp_kv_types_pay_for_their_scales() -> None:
    assert [float(kv_bits(dtype)) for dtype in ("q8_0", "q4_0", "fp8", "auto")] == [8.5, 4.5, 8.0, 16.0]


def test_gguf_tensors_are_stored_in_whole_blocks() -> None:
    by_name = {each.name: each for each in TENSOR_TYPES.values()}
    assert by_name["Q4_K"].stored_bytes(256) == 144
    assert by_name["Q4_K"].stored_bytes(257) == 288
    assert by_name["Q8_0"].stored_bytes(64) == 68


def test_a_slip_in_a_type_is_answered_with_what_was_meant() -> None:
    with pytest.raises(ConfigError, match="did you mean fp8"):
        kv_bits("fp8_")
    with pytest.raises(ConfigError, match=r"--weight-dtype: 'xyz'.*known: fp16"):
        weight_bits("xyz")
