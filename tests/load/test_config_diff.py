from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.config.document import read_document
from tidegate.errors import ConfigError
from tidegate.load.config_diff import config_diff, merged, with_params

CONFIG = """# Ours, since the spring.
upstreams:
  chat: # the main model
    replicas:
      - http://127.0.0.1:8080
      - http://127.0.0.1:8081

# Found by a load test.
models:
  "chat-1.7b": {knee: 12} # see the map
shaping:
  queue:
    max_requests: 64   # was 128
    note: |
      two
      lines
  # nothing more here
tail: # later
"""


def test_a_value_is_changed_where_it_stands_and_comments_stay() -> None:
    found = config_diff(CONFIG, {"shaping": {"queue": {"max_requests": 32}}})
    changed = [line for line in found.splitlines() if line[:1] in "+-" and line[1:2] == " "]
    assert changed == ["-    max_requests: 64   # was 128", "+    max_requests: 32   # was 128"]
    assert found.startswith("--- a/tidegate.yaml\n+++ b/tidegate.yaml\n@@ ")


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"models": {"chat-1.7b": {"knee": 8}}}, '  "chat-1.7b": {knee: 8} # see the map'),
        ({"models": {"chat-1.7b": {"max_wait_s": {"high": 2}}}}, "knee: 12, max_wait_s: {high: 2}} # see the map"),
        ({"models": {"other": {"knee": 3}}}, "  other:\n    knee: 3\nshaping:"),
        ({"shaping": {"queue": {"max_wait_s": 2.5}}}, "      lines\n    max_wait_s: 2.5\n  # nothing more here"),
        ({"upstreams": {"chat": {"kind": "vllm"}}}, "8081\n    kind: vllm\n\n# Found"),
        (
            {"upstreams": {"chat": {"replicas": ["http://127.0.0.1:9"]}}},
            "    replicas: [http://127.0.0.1:9]\n\n# Found",
        ),
        ({"tail": {"hedge": {"enabled": True}}}, "tail: {hedge: {enabled: true}} # later\n"),
        ({"tail": 3}, "tail: 3 # later\n"),
        ({"upstreams": {"chat": 1}}, "  chat: # the main model\n    1\n\n# Found"),
        ({"server": {"port": 80}}, "tail: # later\nserver:\n  port: 80\n"),
        ({"shaping": {"queue": {"max_requests": None}}}, "max_requests: null   # was"),
    ],
)
def test_new_values_stand_in_their_sections(params: dict[str, Any], line: str) -> None:
    after = with_params(CONFIG, params)
    assert line in after
    assert read_document(after, "x").values == merged(read_document(CONFIG, "x").values, params)


def test_what_is_there_already_is_no_change() -> None:
    assert config_diff(CONFIG, {"shaping": {"queue": {"max_requests": 64}}}) == ""
    assert config_diff(CONFIG, {}) == ""


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "# nothing yet", "a: 1"])
def test_an_empty_file_gets_its_first_sections(text: str) -> None:
    after = with_params(text, {"models": {"chat": {"knee": 3}}})
    assert after.endswith("models:\n  chat:\n    knee: 3\n")
    assert after.startswith(text)


def test_a_form_that_hides_where_to_write_is_refused_and_so_is_what_is_no_configuration() -> None:
    with pytest.raises(ConfigError, match="by hand"):
        with_params("a: &x 1\nb: *x\n", {"b": 2})
    with pytest.raises(ConfigError, match="by hand"):
        with_params("a: &x {c: 1}\nb: *x\n", {"b": "3, {", "a": {"c": "z"}})
    with pytest.raises(ConfigError, match=r"t\.yaml:1:1"):
        config_diff("- 1\n", {"b": 2}, "t.yaml")


def test_patch_applies_it(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text(CONFIG.rstrip("\n"))
    params = {"tail": 3, "shaping": {"queue": {"max_requests": 9}}}
    difference = config_diff(CONFIG.rstrip("\n"), params)
    subprocess.run(["git", "apply", "-"], input=difference, text=True, check=True, cwd=tmp_path)
    assert (tmp_path / "tidegate.yaml").read_text() == with_params(CONFIG.rstrip("\n"), params)


KEYS = st.sampled_from(["a", "b", "c", "deep", "x-1"])
SCALARS = st.one_of(
    st.integers(-9, 9), st.booleans(), st.sampled_from(["word", "two words", "no: colon", "# x", "2", ""])
)
TREES: st.SearchStrategy[Any] = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3), max_leaves=6),
    max_size=4,
)


def written(values: dict[str, Any], indent: int = 0) -> str:
    """In the block style, with comments everywhere."""
    out = ""
    for key, value in values.items():
        head = f"{' ' * indent}# about {key}\n{' ' * indent}{key}:"
        if isinstance(value, dict) and value:
            out += f"{head} # section\n{written(value, indent + 2)}"
        else:
            text = f'"{value}"' if isinstance(value, str) else str(value).lower()
            out += f"{head} {text}  # value\n"
    return out


@settings(max_examples=12)
@given(TREES, TREES)
def test_any_parameters_go_into_any_file(values: dict[str, Any], params: dict[str, Any]) -> None:
    text = written(values)
    assert read_document(text, "x").values == values
    after = with_params(text, params)
    assert read_document(after, "x").values == merged(values, params)
    if not any(isinstance(old, dict) for old in values.values()):
        assert after.count("#") >= text.count("#")
