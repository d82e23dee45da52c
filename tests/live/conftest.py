"""One engine alone and one whole service for all live tests: starting them is most of the time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live import running


@pytest.fixture(scope="module")
def engine() -> Iterator[running.Engine]:
    with running.engine() as started:
        yield started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Service]:
    with running.service(tmp_path_factory.mktemp("service") / "serve.log") as started:
        yield started
