from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.client_traces import TracedClient, load_clients

LENGTHS = ([100], [1.0])


def client(family: str, shape: float) -> TracedClient:
    return TracedClient(name="c", rate_per_s=5.0, family=family, shape=shape, prompt=LENGTHS, output=LENGTHS)


def write(folder: Path, name: str, rows: str, lengths: dict[str, dict[str, str]] | None = None) -> None:
    (folder / f"chunk-{name}-trace.csv").write_text(rows, encoding="utf-8")
    if lengths is not None:
        (folder / f"chunk-{name}-dataset.json").write_text(json.dumps(lengths), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEGATE_TRACES", str(tmp_path))
    found = tmp_path / "servegen" / "m-large"
    found.mkdir(parents=True)
    return found


@pytest.mark.parametrize(("family", "shape"), [("Gamma", 0.5), ("Gamma", 2.0), ("Weibull", 0.7)])
def test_a_client_keeps_its_rate_whatever_its_bursts(family: str, shape: float) -> None:
    times = list(client(family, shape).times(Random(1), 2.0, 1000.0))
    assert len(times) == pytest.approx(10_000, rel=0.06)
    assert times == sorted(times)


def test_clients_are_read_at_noon_and_lend_lengths_to_those_that_have_none(folder: Path) -> None:
    lengths = {
        "0": {"input_tokens": "{1: 1.0}", "output_tokens": "{1: 1.0}"},
        "43200": {"input_tokens": "{10: 0.5, 20: 0.5}", "output_tokens": "{3: 1.0}"},
    }
    write(folder, "1", "0,9,1,Gamma,1,1\n43200,2,1.5,Weibull,0.7,0.3\n", lengths)
    write(folder, "2", "43200,5,1,Gamma,0.9,1\n")
    write(folder, "3", "43200,0,0,,0,0\n")
    write(folder, "4", "0,3,1,Gamma,1,1\n")
    found, source = load_clients(1)
    assert [(each.name, each.rate_per_s, each.family, each.shape) for each in found] == [
        ("client-2", 5.0, "Gamma", 0.9),
        ("client-1", 2.0, "Weibull", 0.7),
    ]
    assert found[0].prompt == found[1].prompt == ([10, 20], [0.5, 0.5])
    assert source == "clients of servegen/m-large"


def test_a_folder_without_clients_or_without_lengths_is_told(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no chunk-N-trace\.csv"):
        load_clients(1)
    write(folder, "1", "43200,2,1.5,Weibull,0.7,0.3\n")
    with pytest.raises(ConfigError, match="not the expected format"):
        load_clients(1)
    write(folder, "1", "43200,2\n", {"43200": {"input_tokens": "{}", "output_tokens": "{}"}})
    with pytest.raises(ConfigError, match=r"no chunk-N-dataset\.json with lengths"):
        load_clients(1)


def test_without_a_folder_a_quarter_of_the_look_alikes_carries_most_of_the_load() -> None:
    found, source = load_clients(1)
    assert found == load_clients(1)[0]
    rates = [each.rate_per_s for each in found]
    assert sum(rates[: len(rates) // 4]) / sum(rates) > 0.8
    assert "look-alike" in source
