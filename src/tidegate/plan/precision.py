"""How many bits a number takes: weights, KV, and the tensor types of GGUF files.

Sources. GGUF block sizes: the ``gguf`` package of llama.cpp, ``GGML_QUANT_SIZES``. AWQ and GPTQ store 4 bits,
and per group of 128 numbers one 16-bit scale and one 4-bit zero point: 4 + 20 ÷ 128. MXFP4 stores one 8-bit scale
per 32 numbers, NVFP4 one per 16. llama.cpp's quantized KV is stored in the GGUF types of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from math import ceil

from tidegate.errors import ConfigError

WEIGHT_BITS: Mapping[str, Fraction] = {
    "fp16": Fraction(16),
    "bf16": Fraction(16),
    "fp8": Fraction(8),
    "int8": Fraction(8),
    "int4": Fraction(4),
    "awq": 4 + Fraction(20, 128),
    "gptq": 4 + Fraction(20, 128),
    "nf4": Fraction(9, 2),
    "mxfp4": Fraction(17, 4),
    "nvfp4": Fraction(9, 2),
}

KV_BITS: Mapping[str, Fraction] = {
    "auto": Fraction(16),
    "fp16": Fraction(16),
    "float16": Fraction(16),
    "f16": Fraction(16),
    "bf16": Fraction(16),
    "bfloat16": Fraction(16),
    "fp8": Fraction(8),
    "fp8_e4m3": Fraction(8),
    "fp8_e5m2": Fraction(8),
    "q8_0": Fraction(34 * 8, 32),
    "q4_0": Fraction(18 * 8, 32),
}
"""``auto`` is the checkpoint's own type; engines serve 32-bit checkpoints in 16 bits."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor type of GGUF: so many numbers in so many bytes."""

    name: str
    numbers: int
    size_bytes: int

    def stored_bytes(self, numbers: int) -> int:
        return -(-numbers // self.numbers) * self.size_bytes


TENSOR_TYPES: Mapping[int, TensorType] = {
    code: TensorType(name, numbers, size_bytes)
    for code, name, numbers, size_bytes in (
        (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 40), (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136),
        (24, "I8", 1, 1), (25, "I16", 1, 2), (26, "I32", 1, 4), (27, "I64", 1, 8), (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56), (30, "BF16", 1, 2), (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36),
    )
}  # fmt: skip


def weight_bytes(numbers: int, dtype: str) -> int:
    """Bytes of ``numbers`` weights stored as ``dtype``. Raises ConfigError for an unknown type."""
    return ceil(numbers * weight_bits(dtype) / 8)


def weight_bits(dtype: str) -> Fraction:
    """Bits per weight. Raises ConfigError for an unknown type."""
    return _bits(WEIGHT_BITS, dtype, "--weight-dtype")


def kv_bits(dtype: str) -> Fraction:
    """Bits per number in the KV cache. Raises ConfigError for an unknown type."""
    return _bits(KV_BITS, dtype, "--kv-dtype")


def _bits(known: Mapping[str, Fraction], dtype: str, option: str) -> Fraction:
    if (bits := known.get(dtype.lower())) is None:
        close = get_close_matches(dtype.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise ConfigError([f"{option}: {dtype!r} is no type known here; {hint}"])
    return bits
