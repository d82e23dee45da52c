from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.load.samples_of_a_run import Shape, a_run
from tidegate.errors import ConfigError
from tidegate.load.result_file import read_result, write_result

SMALL = (Shape(name="single", duration_s=10.0), Shape(name="nothing", duration_s=5.0, rate_per_s=0.0001))


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    result, _ = a_run(SMALL)
    path = tmp_path / "result.json"
    write_result(result, path)
    assert read_result(path) == result
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_scripts_find_the_verdict_and_the_version_in_it(tmp_path: Path) -> None:
    result, _ = a_run(SMALL)
    write_result(result, tmp_path / "result.json")
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["passed"] is False
    assert document["format"] == 1
    assert document["phases"][0]["all"]["ttft"]["p50"] > 0


def test_an_older_file_lacks_fields_and_a_newer_one_has_more(tmp_path: Path) -> None:
    result, _ = a_run(SMALL)
    path = tmp_path / "result.json"
    write_result(result, path)
    document = json.loads(path.read_text())
    del document["engine"], document["format"], document["phases"][0]["token_sources"]
    document["invented"] = 1
    path.write_text(json.dumps(document))
    found = read_result(path)
    assert found.engine == {}
    assert found.phases[0].token_sources == {}
    assert found.phases[0].all == result.phases[0].all


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json", "no result of `tidegate load`"),
        (b"[]", "no result of `tidegate load`"),
        (b'{"plan": 5}', "Expected `str`, got `int`"),
        (b'{"format": 99}', "newer Tidegate"),
        (b"\xff\xfe", "no result of `tidegate load`"),
    ],
)
def test_a_file_that_is_no_result_is_told_so(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        read_result(path)


def test_a_file_that_is_not_there_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_result(tmp_path / "nothing.json")
    with pytest.raises(ConfigError, match="not written: No such file"):
        write_result(a_run(SMALL)[0], tmp_path / "nowhere" / "result.json")
