"""locust is not installed here: what the example does without it is tested, and that it compiles."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = (Path(__file__).resolve().parents[2] / "examples" / "locustfile.py").read_text(encoding="utf-8")


def function(name: str) -> Callable[..., Any]:
    """One of its plain functions, without the rest of the file."""
    wanted = [node for node in ast.parse(SOURCE).body if getattr(node, "name", "") == name]
    found: dict[str, Any] = {"Any": Any, "Iterator": None, "HTTPResponse": None}
    exec(compile(ast.Module(wanted, []), "locustfile.py", "exec", flags=annotations.compiler_flag), found)
    taken: Callable[..., Any] = found[name]
    return taken


class Pieces:
    """An answer that comes in the given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = [*pieces]

    def read1(self, _most: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def test_it_compiles() -> None:
    compile(SOURCE, "locustfile.py", "exec")


def test_events_are_told_apart_however_their_bytes_are_cut() -> None:
    answer = Pieces(b'data: {"a":', b" 1}\n\nda", b"ta: [DONE]\n\n: nothing\n")
    assert [*function("events")(answer)] == [b'{"a": 1}', b"[DONE]"]


def test_a_role_alone_is_no_part_of_an_answer() -> None:
    has_content = function("has_content")
    events = ['{"choices":[{"delta":{"role":"assistant","content":""}}]}', '{"choices":[]}', "{}"]
    assert [has_content(json.loads(event)) for event in events] == [False, False, False]
    assert has_content({"choices": [{"delta": {"content": "a"}}]})
    assert has_content({"choices": [{"delta": {"tool_calls": [{}]}}]})
