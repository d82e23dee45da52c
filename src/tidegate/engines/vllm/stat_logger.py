"""The ledger's figures in vLLM's own /metrics.

vLLM finds this class through the entry point ``vllm.stat_logger_plugins``, so Tidegate has to be installed in
vLLM's environment (``pip install --no-deps tidegate``). Without it the figures stand in vLLM's log only.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import Counter, Gauge
from vllm.v1.metrics.loggers import AggregateStatLoggerBase  # type: ignore[import-not-found]  # not installed here

from tidegate.engines.vllm.carried import TOTALS, taken

GAUGES = {
    "pool_blocks": "KV blocks that there are",
    "held_blocks": "KV blocks in block tables, shared ones once for each",
    "reserved_blocks": "KV blocks promised to those that run",
    "peak_reserved_blocks": "Most KV blocks ever promised",
    "leaked": "Reservations of sequences that the engine does not know; not 0 is a bug",
}
COUNTERS = {
    "overtakes": "Times that a waiting sequence was passed by one that came later",
    "preemptions": "Times that vLLM took a running sequence its blocks",
    "pauses": "Times that a running sequence began to wait for a block",
    "paused_steps": "Steps that running sequences waited for a block",
}
PREFIX = "tidegate_kv_"
LABELS = ("model_name", "engine")
"""As vLLM's own metrics have them."""


class ReservationFigures(AggregateStatLoggerBase):  # type: ignore[misc]  # its base is unknown where vLLM is not installed
    """One for all engines of an API server. An engine without the plugin has no figures and gets no metrics."""

    def __init__(self, vllm_config: Any, engine_indexes: list[int]) -> None:
        self.engine_indexes = engine_indexes
        self._model_name = vllm_config.model_config.served_model_name
        self._gauges: dict[str, Gauge] = {}
        self._counters: dict[str, Counter] = {}

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,  # noqa: ARG002 - vLLM's signature
        mm_cache_stats: Any = None,  # noqa: ARG002 - vLLM's signature
        engine_idx: int = 0,
    ) -> None:
        """Called by vLLM with each message of the engine."""
        figures = None if scheduler_stats is None else taken(scheduler_stats.num_kv_fetch_reqs_by_stage)
        if figures is None:
            return
        if not self._gauges:
            self._register()
        labels = (self._model_name, str(engine_idx))
        for name, gauge in self._gauges.items():
            gauge.labels(*labels).set(figures[name])
        for name, counter in self._counters.items():
            counter.labels(*labels).inc(figures[name])

    def log_engine_initialized(self) -> None:
        """The scheduler said in the log what it reserves."""

    def _register(self) -> None:
        # "mostrecent": with several API servers each has its own file, and only one of them got the last message.
        self._gauges = {
            name: Gauge(PREFIX + name, words, LABELS, multiprocess_mode="mostrecent") for name, words in GAUGES.items()
        }
        self._counters = {name: Counter(PREFIX + name, COUNTERS[name], LABELS) for name in TOTALS}
