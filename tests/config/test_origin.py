from __future__ import annotations

import pytest

from tidegate.config.origin import DEFAULT, Kind, Origin, Path, dotted


@pytest.mark.parametrize(
    ("origin", "place"),
    [
        (DEFAULT, ""),
        (Origin(Kind.FILE, "t.yaml", 3, 5), "t.yaml:3:5"),
        (Origin(Kind.ENV, "TIDEGATE__MODE"), "environment TIDEGATE__MODE"),
        (Origin(Kind.ALIAS, "VOLC_STABILITY_MODE"), "environment VOLC_STABILITY_MODE"),
        (Origin(Kind.FLAG, "--mode"), "--mode"),
    ],
)
def test_a_place_says_where_to_change_the_value(origin: Origin, place: str) -> None:
    assert origin.place() == place


@pytest.mark.parametrize(
    ("path", "key"),
    [((), ""), (("a",), "a"), (("a", 0, "b"), "a[0].b"), (("a", ""), 'a.""'), (("a", "b.c", "d"), "a.b.c.d")],
)
def test_a_path_is_written_as_documentation_writes_it(path: Path, key: str) -> None:
    assert dotted(path) == key
