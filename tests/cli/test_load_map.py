from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import run
from tests.cli.test_explain_request import Admin
from tests.load.made_samples import figures_of, steadily
from tidegate.cli.load_trial import combinations, nested
from tidegate.cli.map_rows import parameters_of
from tidegate.errors import ConfigError
from tidegate.gateway.admin_answers import Reloaded
from tidegate.load import validity
from tidegate.load.result import Result
from tidegate.load.result_file import write_result
from tidegate.testing.upstream_process import UpstreamProcess


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_ADMIN_TOKEN", raising=False)
    monkeypatch.setattr(validity, "LEAST_LAG_BOUND_S", 60.0)


@pytest.fixture
def admin(in_a_folder_of_its_own: None) -> Iterator[Admin]:
    server = Admin()
    yield server
    server.close()


def kept(capsys: pytest.CaptureFixture[str], name: str, e2e_s: float, config: str) -> str:
    """Put one run into the map; its id."""
    result = Result(
        plan="steady",
        seed=1,
        targets=["t"],
        began=f"2026-01-0{len(name)}T00:00:00+00:00",
        command="tidegate load",
        manifest={},
        phases=[figures_of(steadily(200, lambda _: e2e_s))],
    )
    write_result(result, Path(f"{name}.json"))
    Path(f"{name}.yaml").write_text(config)
    ended = run(
        capsys, "load", "map", "add", f"{name}.json", "--model", "m", "--card", "A10", "--config", f"{name}.yaml"
    )
    assert ended.status == 0, ended.err
    return ended.out.split()[0]


SLOW = "tail: {timeouts: {multiplier: 3}}\nserver: {port: 9}\n"
QUICK = "tail: {timeouts: {multiplier: 2}}\n"


def test_runs_are_kept_listed_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = kept(capsys, "a", 2.0, SLOW), kept(capsys, "bb", 1.0, QUICK)
    listed = json.loads(run(capsys, "load", "map", "show", "--json").out)["rows"]
    assert [row["id"] for row in listed] == [slow, quick]
    assert listed[0]["params"] == {"tail": {"timeouts": {"multiplier": 3}}}, "ports are no parameters"
    only = run(capsys, "load", "map", "show", "--where", "tail.timeouts.multiplier=2", "--json")
    assert [row["id"] for row in json.loads(only.out)["rows"]] == [quick]
    assert quick in run(capsys, "load", "map", "show").out
    change = json.loads(run(capsys, "load", "map", "compare", slow[:4], quick, "--json").out)
    assert change["params"] == {"tail.timeouts.multiplier": [3, 2]}
    assert change["figures"]["p: e2e.p50"] == [2.0, 1.0]
    shown = run(capsys, "load", "map", "compare", slow, quick).out
    assert "tail.timeouts.multiplier: 3 -> 2" in shown
    assert "0.50" in shown


def test_an_upgrade_that_is_slower_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    quick, slow = kept(capsys, "a", 1.0, QUICK), kept(capsys, "bb", 2.0, QUICK)
    ended = run(capsys, "load", "map", "compare", quick, slow, "--upgrade")
    assert ended.status == 1
    assert "scheduled_e2e.p50 in p" in ended.out
    assert run(capsys, "load", "map", "compare", slow, quick, "--upgrade").status == 0
    verdicts = json.loads(run(capsys, "load", "map", "compare", quick, slow, "--upgrade", "--json").out)["verdicts"]
    assert {each["passed"] for each in verdicts} == {True, False}


def test_the_best_set_is_a_diff_to_the_configuration_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    kept(capsys, "a", 2.0, SLOW)
    best = kept(capsys, "bb", 1.0, QUICK)
    Path("tidegate.yaml").write_text("# ours\ntail:\n  timeouts:\n    multiplier: 3 # as ever\n")
    ended = run(capsys, "load", "map", "suggest", "--objective", "least e2e.p95", "--config", "tidegate.yaml")
    assert ended.status == 0
    assert "-    multiplier: 3 # as ever\n+    multiplier: 2 # as ever\n" in ended.out
    told = json.loads(run(capsys, "load", "map", "suggest", "--objective", "least e2e.p95", "--json").out)
    assert told["best"]["id"] == best
    nothing = run(capsys, "load", "map", "suggest", "--objective", "least e2e.p95; e2e.p95 <= 0.5 s")
    assert nothing.status == 1
    assert "no row grants" in nothing.err
    assert f"{best}: " in nothing.err


def test_every_combination_is_played_and_the_parameters_are_put_back(
    capsys: pytest.CaptureFixture[str], admin: Admin
) -> None:
    with UpstreamProcess(slots=64, pace_s=0.001, first_s=0.005, kind="openai", model="m") as engine:
        plan = ["--plan", "steady-load@40", "--time-scale", "0.0005", "--out", "runs"]
        tried = ["--try", "retries.ratio=0.1,0.3"]
        ended = run(capsys, "load", "map", "try", f"{engine.url}/v1", *tried, "--admin", admin.url, *plan)
    assert ended.status == 0, ended.err
    # The operator had set 0.2 (see the panel), and has it again.
    assert [patch for patch, _ in admin.panel.patches] == [{"retries.ratio": value} for value in (0.1, 0.3, 0.2)]
    rows = json.loads(run(capsys, "load", "map", "show", "--json").out)["rows"]
    assert [row["params"] for row in rows] == [{"retries": {"ratio": 0.1}}, {"retries": {"ratio": 0.3}}]
    assert all(row["results"]["steady"]["answered_per_s"] > 0 for row in rows)
    assert Path("runs/trial-2/report.html").exists()


def test_a_value_that_cannot_be_set_ends_the_trials_before_any_load(
    capsys: pytest.CaptureFixture[str], admin: Admin
) -> None:
    admin.panel.reloaded = Reloaded(problems=["admin API: retries.ratio: must be a number"])
    with UpstreamProcess(kind="openai", model="m") as engine:
        tried = ["--try", "retries.ratio=much", "--admin", admin.url]
        ended = run(capsys, "load", "map", "try", f"{engine.url}/v1", *tried)
        assert engine.log() == []
    assert ended.status == 1
    assert "--try: admin API: retries.ratio: must be a number" in ended.err


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["a.b=1,2", "c=x"], [{"a.b": 1, "c": "x"}, {"a.b": 2, "c": "x"}]),
        (["a=true"], [{"a": True}]),
    ],
)
def test_combinations_are_typed_as_yaml_would(values: list[str], found: list[dict[str, Any]]) -> None:
    assert combinations(values) == found


def test_too_many_combinations_are_refused() -> None:
    many = ",".join(map(str, range(51)))
    with pytest.raises(ConfigError, match="51 combinations; at most 50"):
        combinations([f"a={many}"])


def test_dotted_keys_become_sections() -> None:
    assert nested({"a.b": 1, "a.c": 2, "d": 3}) == {"a": {"b": 1, "c": 2}, "d": 3}


def test_replicas_are_no_parameters_of_an_upstream(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("upstreams:\n  m: {replicas: [{url: 'http://x'}], pool: {slot_tokens: 256}}\n  n: embedded\n")
    assert parameters_of(file) == {"upstreams": {"m": {"pool": {"slot_tokens": 256}}, "n": {}}}
    assert parameters_of(None) == {}
    with pytest.raises(ConfigError, match="No such file"):
        parameters_of(tmp_path / "gone.yaml")
    file.write_text("a: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        parameters_of(file)


def test_files_that_cannot_be_read_or_written_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    kept(capsys, "a", 1.0, QUICK)
    Path("folder").mkdir()
    Path("latin.yaml").write_bytes(b"mode: d\xe9v\n")
    wish = ["load", "map", "suggest", "--objective", "least e2e.p95"]
    for arguments, said in (
        ([*wish, "--config", "gone.yaml"], "gone.yaml: No such file or directory"),
        ([*wish, "--config", "latin.yaml"], "latin.yaml: no UTF-8 text"),
        ([*wish, "--map", "folder"], "folder: Is a directory"),
        (["load", "map", "add", "a.json", "--model", "m", "--map", "folder"], "folder: Is a directory"),
    ):
        ended = run(capsys, *arguments)
        assert (ended.status, ended.err) == (1, f"{said}\n")


def test_a_filter_needs_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "load", "map", "show", "--where", "model")
    assert ended.status == 1
    assert "--where model: must be NAME=PATTERN" in ended.err
