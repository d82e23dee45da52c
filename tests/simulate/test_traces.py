from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.traces import FOLDER_VARIABLE, load_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
MOONCAKE = """{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}
"""


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_azure_format_is_read_to_the_tenth_of_a_microsecond(folder: Path) -> None:
    write(folder, "azure-2023/AzureLLMInferenceTrace_conv.csv", AZURE)
    trace = load_trace("azure-conv", seed=1)
    assert [(row.prompt_tokens, row.output_tokens) for row in trace.arrivals] == [(374, 44), (396, 109)]
    assert trace.arrivals[0].at == 0.0
    assert trace.arrivals[1].at == pytest.approx(4.314579, abs=1e-6)
    assert trace.source.startswith("trace azure-2023")


def test_mooncake_arrivals_are_spread_inside_their_tick_by_the_seed(folder: Path) -> None:
    write(folder, "mooncake/conversation_trace.jsonl", MOONCAKE)
    first, second = load_trace("mooncake", seed=1).arrivals
    assert 0.0 <= first.at < 3.0 <= second.at < 6.0
    assert (first.prompt_tokens, first.output_tokens) == (6758, 500)
    assert load_trace("mooncake", seed=1).arrivals == [first, second]
    assert load_trace("mooncake", seed=2).arrivals != [first, second]


def test_without_a_folder_the_look_alike_is_played_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    trace = load_trace("azure-code", seed=1)
    assert "look-alike" in trace.source
    assert FOLDER_VARIABLE in trace.source
    assert trace.arrivals


def test_a_missing_file_says_which_and_what_to_do(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"AzureLLMInferenceTrace_code\.csv does not exist; unset"):
        load_trace("azure-code", seed=1)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", AZURE.replace("374", "many"), "TIMESTAMP,ContextTokens\n"])
def test_a_file_of_another_format_is_named(folder: Path, text: str) -> None:
    write(folder, "azure-2023/AzureLLMInferenceTrace_conv.csv", text)
    with pytest.raises(ConfigError, match="not the expected format of azure-conv"):
        load_trace("azure-conv", seed=1)
