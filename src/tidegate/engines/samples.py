"""Figures from a page in the Prometheus text format."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tidegate.errors import EngineError


class Samples:
    """The samples of the ``wanted`` names. The other lines, some thousand histogram buckets of a vLLM
    page, are dropped before they are parsed."""

    def __init__(self, page: bytes, wanted: Iterable[str]) -> None:
        """Raises EngineError for a page that is not in the format."""
        names = tuple(wanted)
        lines = [line for line in page.decode("utf-8", "replace").splitlines() if line.startswith(names)]
        try:
            families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
        except (ValueError, KeyError, IndexError) as error:
            raise EngineError(f"a metrics page that cannot be parsed: {error}") from error
        self._samples = [sample for family in families for sample in family.samples]

    def of(self, name: str) -> list[Sample]:
        """Every sample of exactly this name."""
        return [sample for sample in self._samples if sample.name == name]

    def total(self, name: str) -> int | None:
        """Sum over all labels; None when the page has no such name."""
        found = self.of(name)
        return int(sum(sample.value for sample in found)) if found else None
