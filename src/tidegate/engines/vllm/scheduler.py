"""vLLM's scheduler with a ledger: nobody begins whose memory is promised to others.

    --scheduler-cls tidegate.engines.vllm.scheduler.ReservingScheduler        async scheduling off (always so on a CPU)
    --scheduler-cls tidegate.engines.vllm.scheduler.AsyncReservingScheduler   async scheduling on (default on a GPU)
    --additional-config '{"tidegate": {"rule": "peak", "lengths": "learned"}}'

Runs inside vLLM's own process: it imports vLLM, the standard library, and the pure modules beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vllm  # type: ignore[import-not-found]  # vLLM has an environment of its own
from vllm.logger import init_logger  # type: ignore[import-not-found]  # as above
from vllm.v1.core.sched.async_scheduler import AsyncScheduler  # type: ignore[import-not-found]  # as above
from vllm.v1.core.sched.scheduler import Scheduler  # type: ignore[import-not-found]  # as above

from tidegate.engines.vllm.attachment import unsupported
from tidegate.engines.vllm.reservation import Reservation
from tidegate.engines.vllm.reserver import Reserver
from tidegate.engines.vllm.versions import why_not

LOG = init_logger("vllm.tidegate")
"""Only names below ``vllm`` have a handler in vLLM's processes."""


def reservation_of(vllm_config: Any) -> Reservation:
    """The object ``tidegate`` of --additional-config. Raises ValueError with words."""
    section = (vllm_config.additional_config or {}).get("tidegate", {})
    if not isinstance(section, Mapping):
        raise ValueError(f"--additional-config: tidegate must be an object, not {section!r}")
    try:
        return Reservation.of(section)
    except ValueError as error:
        raise ValueError(f"--additional-config: tidegate: {error}") from None


class ReservingScheduler(Scheduler):  # type: ignore[misc]  # its base is unknown where vLLM is not installed
    """Admission by reservation; all else is vLLM's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError where the reservation could not be kept."""
        super().__init__(*args, **kwargs)
        self.reserver = self._reserver()

    def _reserver(self) -> Reserver | None:
        reservation = reservation_of(self.vllm_config)
        warning = why_not(vllm.__version__, reservation.unknown_version)
        if warning is not None:
            if reservation.unknown_version == "refuse":
                raise ValueError(warning)
            LOG.error("%s", warning)
            return None
        reason = unsupported(self, reservation)
        if reason is not None:
            raise ValueError(f"Tidegate's scheduler cannot keep its promise on this engine: {reason}")
        return Reserver(self, reservation, LOG)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        if self.reserver is None:
            return super().schedule(*args, **kwargs)
        self.reserver.open_step()
        output = super().schedule(*args, **kwargs)
        self.reserver.close_step()
        return output

    def _handle_blocked_waiting_request(self, request: Any) -> bool:
        # A refused request is skipped and keeps its place; vLLM counts it as waiting, reason "deferred".
        ready: bool = super()._handle_blocked_waiting_request(request)
        return ready and (self.reserver is None or self.reserver.admits(request))

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if self.reserver is not None:
            self.reserver.preempted(request)
        return super()._preempt_request(request, *args, **kwargs)

    def _free_request_blocks(self, request: Any) -> None:
        super()._free_request_blocks(request)
        if self.reserver is not None:
            self.reserver.freed(request)

    def _free_blocks(self, request: Any) -> None:
        super()._free_blocks(request)
        if self.reserver is not None:
            self.reserver.ended(request)

    def make_stats(self, *args: Any, **kwargs: Any) -> Any:
        stats = super().make_stats(*args, **kwargs)
        if stats is not None and self.reserver is not None:
            self.reserver.tell(stats)
        return stats

    def shutdown(self) -> None:
        if self.reserver is not None:
            self.reserver.close()
        super().shutdown()


class AsyncReservingScheduler(ReservingScheduler, AsyncScheduler):  # type: ignore[misc]  # as above
    """The same for asynchronous scheduling, which vLLM allows only to subclasses of its own class for it."""
