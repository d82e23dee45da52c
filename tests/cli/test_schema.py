from __future__ import annotations

import json

import pytest

from tests.cli.commands import run
from tidegate.config.json_schema import json_schema
from tidegate.config.table import markdown_table


def test_the_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(run(capsys, "schema").out) == json_schema()


def test_the_table_is_printed_for_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "schema", "--table").out.strip() == markdown_table().strip()
