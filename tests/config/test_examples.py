from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config import load, path_config

NO_CONFIGURATION = {"load-plan", "gates", "drill"}
"""Plans and gates of load runs, and the file of drills; tests/load reads them."""
FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.yaml") if path.stem not in NO_CONFIGURATION)
ENV = {"ENGINE_KEY": "k", "TIDEGATE_CLIENT_SHA256": "a" * 64, "TIDEGATE_ADMIN_SHA256": "b" * 64}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_loads_without_a_warning(path: Path) -> None:
    settings = load(path, {}, ENV, path.parent)
    assert settings.warnings == ()
    assert settings.upstreams
    assert path_config(settings).replicas


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"minimal", "embedded", "fleet", "public", "customer-service"}
