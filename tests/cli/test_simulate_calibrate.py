"""Records of a known engine in, an engine file out; and policies on it."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.known_engine import records
from tidegate.cli.main import app
from tidegate.cli.simulate_calibrate import cut
from tidegate.load.calibration_rows import CalibrationRows
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.gap_counts import GapCounts
from tidegate.load.played import Played
from tidegate.load.records_file import write_records
from tidegate.load.sample import Sample
from tidegate.simulate.calibrated_engine import read_engine_file
from tidegate.simulate.calibration import MOST_ROWS

KNOWN = ("--engine-sequences", "4", "--chunk", "128", "--context", "2048")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(["simulate", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = [
        Sample(
            phase=row.phase,
            target="engine",
            index=index,
            label="chat",
            due_at=row.at,
            sent_at=row.at,
            ended_at=row.last_at,
            outcome=ClientOutcome.OK,
            first_at=row.first_at,
            last_at=row.last_at,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            max_tokens=64,
        )
        for index, row in enumerate(records())
    ]
    samples.append(Sample("at-3", "engine", len(samples), "chat", 1.0, 1.0, 1.1, ClientOutcome.SHED))
    played = Played(
        phase="all",
        target="engine",
        began_s=0.0,
        ended_s=1.0,
        samples=samples,
        gaps=GapCounts(),
        token_gaps=GapCounts(),
    )
    return write_records([played], tmp_path_factory.mktemp("records") / "records")


@pytest.fixture(scope="module")
def engine(path: Path) -> tuple[Path, str]:
    """The written file, and what was printed."""
    out = path.with_name("engine.json")
    with redirect_stdout(StringIO()) as shown:
        assert run("calibrate", str(path), *KNOWN, "--out", str(out), "--within", "5") == 0
    return out, shown.getvalue()


def test_json_says_what_was_fitted_and_how_far_it_is_off(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("calibrate", "--schema") == 0
    fields = json.loads(capsys.readouterr().out)["fields"]
    assert run("calibrate", str(path), *KNOWN, "--fit", "single,at-1,at-2", "--json", "--within", "0") == 1
    captured = capsys.readouterr()
    assert "--within 0 allows less" in captured.err
    found: dict[str, Any] = json.loads(captured.out)
    assert {name.removesuffix("[]") for name in fields} == found.keys()
    assert found["simulated"] is True
    assert (found["held_out"], found["left_out"]) == (14, {"shed": 1})
    assert {each["phase"] for each in found["check"]} == {"at-3"}
    assert found["worst_error"] < 0.05
    assert found["step_ms"]["prefill"] == pytest.approx(0.9, rel=0.1)


def test_the_table_says_what_was_held_out(engine: tuple[Path, str]) -> None:
    out, shown = engine
    assert "1 left out (shed)" in shown
    assert "prefill, per prompt token" in shown
    assert f"tidegate simulate own-engine@{out}" in shown


def test_more_than_is_compared_is_left_out_and_counted() -> None:
    rows = [replace(row, at=row.at + lap * 1e4) for lap in range(40) for row in records()]
    given = CalibrationRows(rows=rows)
    told = cut(given)
    assert len(told.rows) == MOST_ROWS
    assert told.left_out == {f"after the first {MOST_ROWS}": len(rows) - MOST_ROWS}


def test_records_have_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("calibrate") == 1
    assert "name the records" in capsys.readouterr().err


def test_the_written_engine_plays_the_run_under_any_policy(
    engine: tuple[Path, str], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = engine
    file = read_engine_file(out)
    assert (len(file.traffic), file.source) == (len(records()), str(path))
    assert run(f"own-engine@2x3/{out}", "-p", "native", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["offered"] == len(records())
    assert found["errors"]["rate"] == 0
