"""A vLLM of our own, as configured."""

from __future__ import annotations

import secrets
import sys
from math import ceil

from tidegate.cli.recipe import Recipe
from tidegate.config.slot_plan import MOST_SEQUENCES, SlotPlan
from tidegate.config.started_engines import Reservation as ReservationSection
from tidegate.config.started_engines import Vllm
from tidegate.engines.address import Address
from tidegate.engines.loopback import free_port
from tidegate.engines.vllm.checkpoint import dtype_of, holds_tidegate, installed_version
from tidegate.engines.vllm.command import VllmCommand
from tidegate.engines.vllm.order import Order
from tidegate.engines.vllm.readings import VllmServer
from tidegate.engines.vllm.reservation import Reservation
from tidegate.errors import EngineError
from tidegate.fleet.supervisor import SupervisorConfig
from tidegate.gateway.composition import Told
from tidegate.gateway.settings import Endpoint

GIB = 2**30
MISSED_CHECKS = 6
"""Half a minute without a sign of life. Beside a long step on a full machine its API process was seen to be silent
for seconds, and a start costs more than that."""
END_WITHIN_S = 15.0
"""After its running requests, vLLM takes some seconds to end its processes."""


def vllm_recipe(alias: str, name: str, section: Vllm, plan: SlotPlan) -> Recipe:
    """Runs ``python`` to ask for its vLLM, which takes a moment. Raises EngineError when it could not start."""
    command = command_of(alias, section, plan)
    address = Address(url=f"http://{command.host}:{command.port}", api_key=command.api_key)
    engine = VllmServer(address)
    endpoint = Endpoint(
        name=name,
        host=command.host,
        port=command.port,
        kind=engine.kind,
        api_key=command.api_key,
        model=alias,
    )
    told = Told(
        capacity=plan.capacity(),
        kind=engine.kind,
        confirms_aborts=engine.confirms_aborts,
        abort_grace_s=engine.abort_grace_s,
        endpoint=endpoint,
    )
    return Recipe(
        product=f"vLLM {command.version}",
        engine=engine,
        told=told,
        launch=Order(command=command.arguments(), env={**command.environment(), **section.env}, url=address.url).launch(
            name
        ),
        loading_line=f"Loading model weights... ({section.model}, vLLM {command.version} on {section.device})",
        is_slow=True,
        can_sleep=section.can_sleep,
        warnings=(command.warning,) if command.warning else (),
        supervision=SupervisorConfig(
            ready_within_s=section.ready_within_s,
            missed_checks=MISSED_CHECKS,
            stop_grace_s=section.drain_s + END_WITHIN_S,
        ),
    )


def command_of(alias: str, section: Vllm, plan: SlotPlan) -> VllmCommand:
    """The command that this section and its slots amount to; each call takes another port. Raises EngineError."""
    python = section.python or sys.executable
    reservation = reservation_of(section.reservation)
    if reservation is not None and not holds_tidegate(python):
        raise EngineError(
            f"{alias}: {python} cannot import tidegate, whose scheduler shall run inside vLLM: "
            f"{python} -m pip install --no-deps tidegate, or set reservation.rule to off"
        )
    is_gpu = section.device == "gpu"
    return VllmCommand(
        model=section.model,
        dtype=section.dtype or dtype_of(section.model),
        served_name=alias,
        port=free_port(),
        context_tokens=section.context_tokens,
        sequences=plan.sequences or MOST_SEQUENCES,
        kv_bytes=section.kv_bytes,
        kv_blocks=section.kv_blocks,
        block_tokens=section.block_tokens,
        batch_tokens=section.batch_tokens,
        memory_share=section.memory_share if is_gpu else None,
        host_kv_gib=None if is_gpu else _host_kv_gib(section, plan),
        tensor_parallel=section.tensor_parallel,
        pipeline_parallel=section.pipeline_parallel,
        prefix_caching=section.prefix_caching,
        orders_by_priority=section.priority,
        queued_requests=section.queued_requests,
        queued_tokens=section.queued_tokens,
        reservation=reservation,
        drain_s=section.drain_s,
        is_asynchronous=is_gpu and section.asynchronous,
        can_sleep=section.can_sleep,
        python=python,
        version=installed_version(python),
        devices=section.devices,
        cpus=section.cpus,
        api_key=secrets.token_urlsafe(24),
        extra=section.extra,
    )


def reservation_of(section: ReservationSection) -> Reservation | None:
    """The same, as the scheduler takes it; None: vLLM schedules by itself."""
    if section.rule == "off":
        return None
    return Reservation(
        rule=section.rule,
        lengths=section.lengths,
        quantile=section.quantile,
        guaranteed=section.guaranteed,
        overtakes=section.overtakes,
        pause_steps=section.pause_steps,
        history_file=section.history_file,
        unknown_version=section.unknown_version,
    )


def _host_kv_gib(section: Vllm, plan: SlotPlan) -> int | None:
    """On a CPU a pool of blocks is cut from this, or vLLM would ask for nine tenths of the memory. It is of whole GiB
    and goes before the pool in bytes, which needs none."""
    if section.kv_bytes is not None:
        return None
    return max(1, ceil((plan.pool_tokens or 0) * (plan.bytes_per_token or 0) / GIB))
