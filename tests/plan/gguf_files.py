"""Small GGUF files, written as the specification of ggml says."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

UINT32, FLOAT32, BOOL, TEXT, LIST = 4, 6, 7, 8, 9

Value = int | float | bool | str | Sequence[int] | Sequence[bool] | Sequence[str]


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def typed(value: Value) -> tuple[int, bytes]:
    """GGUF type and content of one metadata value."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return TEXT, text(value)
    inner = [typed(each) for each in value]
    kind = inner[0][0] if inner else UINT32
    return LIST, struct.pack("<IQ", kind, len(inner)) + b"".join(content for _, content in inner)


def tensor(name: str, dimensions: Sequence[int], kind: int) -> bytes:
    sizes = b"".join(struct.pack("<Q", each) for each in dimensions)
    return text(name) + struct.pack("<I", len(dimensions)) + sizes + struct.pack("<IQ", kind, 0)


def gguf(metadata: Mapping[str, Value], tensors: Sequence[bytes] = (), version: int = 3) -> bytes:
    """The head of a GGUF file; it may end there, since nothing reads further."""
    keys = b"".join(text(key) + struct.pack("<I", typed(value)[0]) + typed(value)[1] for key, value in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)) + keys + b"".join(tensors)


LLAMA: dict[str, Value] = {
    "general.architecture": "llama",
    "llama.block_count": 4,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 2048,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "llama.rope.freq_base": 10000.0,
}
EMBEDDING = tensor("token_embd.weight", (64, 3), 1)


def write(folder: Path, content: bytes, name: str = "model.gguf") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path
