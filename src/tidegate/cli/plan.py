"""``tidegate plan``: memory, slots and lengths, worked out before anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.errors import ConfigError
from tidegate.plan import memory_report, slot_sizes
from tidegate.plan.footprint import DEFAULT_UTILIZATION, Footprint, Serving
from tidegate.plan.gpus import gpu as find_gpu
from tidegate.plan.known_models import CONFIGS
from tidegate.plan.memory import MemoryPlan, check, spread_over
from tidegate.plan.model_source import find_model
from tidegate.plan.paging import BLOCK_TOKENS
from tidegate.plan.traffic import Traffic, read_traffic

Gpu = Annotated[str | None, typer.Option("--gpu", help="Such as A10, A100-80, H100, or its memory in MiB.")]
TensorParallel = Annotated[int, typer.Option("--tp", min=1, help="GPUs that share every layer.")]
Stages = Annotated[int, typer.Option("--pp", min=1, help="Pipeline stages.")]
Utilization = Annotated[float, typer.Option(help="Share of the memory that the engine may use.")]
KvDtype = Annotated[str, typer.Option(help="auto, fp8, and for llama.cpp q8_0 or q4_0.")]
WeightDtype = Annotated[
    str | None, typer.Option(help="Count the weights as fp16, fp8, int8, awq, gptq, nf4 …, whatever the checkpoint is.")
]
WeightsGib = Annotated[float | None, typer.Option(min=0, help="Size of the weights, where it is known.")]
SlotMib = Annotated[int, typer.Option(min=1, help="Size of one slot on one GPU.")]
MaxNumSeqs = Annotated[int | None, typer.Option(min=1, help="Sequences asked for. Default: the recommended number.")]
Overcommit = Annotated[
    Literal["clamp", "fail"],
    typer.Option(help="More sequences than slots: run as many as there are slots, with a warning, or end with 1."),
]
BatchedTokens = Annotated[int | None, typer.Option(min=1, help="vLLM's --max-num-batched-tokens. Default: its own.")]
BlockTokens = Annotated[int, typer.Option(min=1, help="vLLM's --block-size.")]
ActivationsMib = Annotated[int | None, typer.Option(min=0, help="As measured, in place of the estimate.")]
ContextMib = Annotated[int | None, typer.Option(min=0, help="CUDA context as measured, in place of the estimate.")]
FromLog = Annotated[Path | None, typer.Option(help="Lengths from a request log or usage JSON lines.")]
FromTrace = Annotated[Path | None, typer.Option(help="Lengths from an Azure CSV or Mooncake JSON lines.")]

plan = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Work out memory, slots and lengths before anything is started."
)


@plan.command()
def memory(  # noqa: PLR0913, PLR0917  # Typer wants one parameter for each option
    model: Annotated[str | None, typer.Argument(help="config.json, its folder, a GGUF file or a preset.")] = None,
    gpu: Gpu = None,
    count: Annotated[int | None, typer.Option(min=1, help="GPUs at hand; the fewest that will do are taken.")] = None,
    tp: TensorParallel = 1,
    pp: Stages = 1,
    context: Annotated[
        list[int] | None, typer.Option(min=1, help="Tokens of one sequence; repeatable, the longest is max_model_len.")
    ] = None,
    utilization: Utilization = DEFAULT_UTILIZATION,
    kv_dtype: KvDtype = "auto",
    weight_dtype: WeightDtype = None,
    weights_gib: WeightsGib = None,
    slot_mib: SlotMib = 256,
    max_num_seqs: MaxNumSeqs = None,
    overcommit: Overcommit = "clamp",
    max_num_batched_tokens: BatchedTokens = None,
    block_tokens: BlockTokens = BLOCK_TOKENS,
    activations_mib: ActivationsMib = None,
    context_mib: ContextMib = None,
    from_log: FromLog = None,
    from_trace: FromTrace = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Does it fit, how many sequences, and with which flags?

    Ends with status 1 when one sequence of the planned length does not fit.
    """
    if schema:
        print_schema(memory_report.SCHEMA)
        return
    serving = Serving(
        tensor_parallel=tp,
        stages=pp,
        utilization=utilization,
        kv_dtype=kv_dtype,
        slot_mib=slot_mib,
        max_sequences=max_num_seqs,
        prefill_tokens=max_num_batched_tokens,
        block_tokens=block_tokens,
        activations_mib=activations_mib,
        context_mib=context_mib,
    )
    asked = Asked(_needed(model, "MODEL", f"presets: {', '.join(CONFIGS)}"), gpu, weight_dtype, weights_gib, serving)
    found = MemoryPlan(asked.footprint(), asked.rewritten, context or (), count, _traffic(from_log, from_trace))
    if serving.gpus == 1:
        found = spread_over(found)
    if overcommit == "fail" and found.overcommit is not None:
        raise ConfigError([f"--overcommit fail: {found.overcommit}"])
    told = memory_report.report(found)
    if as_json:
        print_json(told)
    else:
        # The tables need rich, which takes longer to import than the arithmetic.
        from tidegate.cli.plan_memory import print_memory  # noqa: PLC0415  # see above

        print_memory(told)
    if not told["fits"]:
        raise typer.Exit(1)


@plan.command()
def slots(  # noqa: PLR0913, PLR0917  # Typer wants one parameter for each option
    from_log: FromLog = None,
    from_trace: FromTrace = None,
    model: Annotated[str | None, typer.Option(help="As in plan memory; with --gpu, slots are counted too.")] = None,
    gpu: Gpu = None,
    tp: TensorParallel = 1,
    pp: Stages = 1,
    utilization: Utilization = DEFAULT_UTILIZATION,
    kv_dtype: KvDtype = "auto",
    weight_dtype: WeightDtype = None,
    weights_gib: WeightsGib = None,
    slot_mib: SlotMib = 256,
    block_tokens: BlockTokens = BLOCK_TOKENS,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Which slot size, output bound and class border suit a traffic?"""
    if schema:
        print_schema(slot_sizes.SCHEMA)
        return
    if (traffic := _traffic(from_log, from_trace)) is None:
        raise ConfigError(["plan slots: give --from-log FILE or --from-trace FILE"])
    if (model is None) != (gpu is None):
        raise ConfigError(["plan slots: --model and --gpu belong together"])
    footprint = None
    if model is not None:
        serving = Serving(
            tensor_parallel=tp,
            stages=pp,
            utilization=utilization,
            kv_dtype=kv_dtype,
            slot_mib=slot_mib,
            block_tokens=block_tokens,
        )
        footprint = Asked(model, gpu, weight_dtype, weights_gib, serving).footprint()
        check(footprint, None)
    told = slot_sizes.report(traffic, footprint, block_tokens)
    if as_json:
        print_json(told)
    else:
        from tidegate.cli.plan_slots import print_slots  # noqa: PLC0415  # as above: rich takes long to import

        print_slots(told)


@dataclass(frozen=True, slots=True)
class Asked:
    """A model on a GPU, as the command line names them."""

    model: str
    gpu: str | None
    weight_dtype: str | None
    weights_gib: float | None
    serving: Serving

    def footprint(self) -> Footprint:
        gpu = find_gpu(_needed(self.gpu, "--gpu", "such as --gpu A10, or its memory in MiB"))
        return Footprint(find_model(self.model, self.weight_dtype, self.weights_gib), gpu, self.serving)

    def rewritten(self, weight_dtype: str) -> Footprint | None:
        """The same with the weights in another format; None where that cannot be counted."""
        try:
            gpu = find_gpu(self.gpu or "")
            return Footprint(find_model(self.model, weight_dtype), gpu, self.serving)
        except ConfigError:
            return None


def _needed(value: str | None, name: str, hint: str) -> str:
    if value is None:
        raise ConfigError([f"plan memory: {name} is missing; {hint}"])
    return value


def _traffic(from_log: Path | None, from_trace: Path | None) -> Traffic | None:
    if from_log is not None and from_trace is not None:
        raise ConfigError(["--from-log and --from-trace: give one of them"])
    path = from_log or from_trace
    return None if path is None else read_traffic(path)
