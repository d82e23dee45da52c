"""``plan memory`` for people: the answer first, then where the memory goes."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

BAR_COLUMNS = 40
PARTS = ("weights", "activations", "context", "kv_pool")
FILLS = {"weights": "█", "activations": "▓", "context": "▒", "kv_pool": "░", "unused": " "}


def print_memory(told: dict[str, Any]) -> None:
    """``told`` is the report of ``plan.memory_report``."""
    console = Console()
    console.print(_heading(told), soft_wrap=True, markup=False, highlight=False)
    for problem in told["problems"]:
        console.print(f"DOES NOT FIT: {problem}", soft_wrap=True, markup=False)
    for remedy in told["remedies"]:
        console.print(f"  - {remedy}", soft_wrap=True, markup=False)
    console.print(_memory(told))
    if told["memory"]["kv_pool"] > 0:
        slots = told["slots"]
        console.print(
            f"\n{slots['slots']} slots of {slots['slot_mib']} MiB ({slots['slot_tokens']} tokens); recommended "
            f"--max-num-seqs {slots['recommended_max_num_seqs']} (80 %)",
            soft_wrap=True,
            highlight=False,
        )
        console.print(_sequences(told))
    console.print(f"\nspread over GPUs: sequences of {told['max_model_len']} tokens", highlight=False)
    console.print(_spread(told), end="\n\n")
    _sentences(console, told)


def _heading(told: dict[str, Any]) -> str:
    model, gpu, serving = told["model"], told["gpu"], told["serving"]
    size = "" if model["parameters"] is None else f", {model['parameters'] / 1e9:.2f} B parameters"
    if model["active_parameters"] != model["parameters"]:
        size += f" ({model['active_parameters'] / 1e9:.2f} B active)"
    return (
        f"{model['name']}{size}, {model['weight_format']}, {_attention(model['layers'])}\n"
        f"on {gpu['name']} ({gpu['memory_mib']} MiB), TP={serving['tensor_parallel']} "
        f"PP={serving['pipeline_parallel']}, utilization {serving['utilization']:g}, KV {serving['kv_dtype']}"
    )


def _attention(layers: list[dict[str, Any]]) -> str:
    kinds = []
    for each in layers:
        heads = "latent (MLA)" if each["latent"] else f"{each['kv_heads']} KV heads × {each['key_width']}"
        sees = "" if each["window_tokens"] is None else f", window {each['window_tokens']}"
        kinds.append(f"{each['count']} layers of {heads}{sees}")
    return " + ".join(kinds)


def _memory(told: dict[str, Any]) -> Table:
    memory, kv, slots = told["memory"], told["kv"], told["slots"]
    table = Table("one GPU", show_edge=False)
    table.add_column("MiB", justify="right")
    table.add_column(_bar(memory))
    notes = {
        "weights": told["model"]["weight_format"],
        "activations": f"estimate for {slots['max_num_seqs']} sequences",
        "context": "estimate: CUDA, graphs, NCCL",
        "kv_pool": f"{kv['pool_tokens']} tokens of {kv['bytes_per_token'] / 1024:.4g} KiB, {kv['blocks']} blocks",
    }
    for part in PARTS:
        table.add_row(f"{FILLS[part]} {part.replace('_', ' ')}", f"{memory[part]:.0f}", notes[part])
    table.add_row("  not used", f"{memory['total'] - memory['budget']:.0f}", "what utilization leaves alone")
    return table


def _bar(memory: dict[str, float]) -> Text:
    """The whole of the GPU; what does not fit is cut off."""
    bar = "".join(FILLS[part] * round(max(0.0, memory[part]) / memory["total"] * BAR_COLUMNS) for part in PARTS)
    return Text(f"[{bar[:BAR_COLUMNS]:<{BAR_COLUMNS}}]")


def _sequences(told: dict[str, Any]) -> Table:
    table = Table(show_edge=False)
    for name in ("tokens", "MiB each", "slots each", "sequences", "80 %"):
        table.add_column(name, justify="right")
    for row in told["contexts"]:
        planned = " *" if row["tokens"] == told["max_model_len"] else ""
        table.add_row(
            f"{row['tokens']}{planned}",
            f"{row['sequence_mib']:.1f}",
            str(row["slots"]),
            str(row["sequences"]),
            str(row["recommended"]),
        )
    return table


def _spread(told: dict[str, Any]) -> Table:
    table = Table(show_edge=False)
    for name in ("spread", "GPUs", "pool MiB each", "slots each", "sequences", "per GPU"):
        table.add_column(name, justify="left" if name == "spread" else "right")
    for row in told["parallel"]:
        table.add_row(
            row["label"],
            str(row["gpus"]),
            f"{row['kv_pool_mib']:.0f}",
            str(row["slots"]),
            str(row["sequences"]) if row["fits"] else "does not fit",
            f"{row['sequences_per_gpu']:.1f}",
        )
    return table


def _sentences(console: Console, told: dict[str, Any]) -> None:
    lines = [f"WARN {warning}" for warning in told["warnings"]]
    lines += [*told["advice"], *told["notes"]]
    lines.append(f"max_model_len {told['max_model_len']} (* above): {told['max_model_len_from']}")
    if told["fits"]:
        replica = ", ".join(f"{key}: {value}" for key, value in told["replica"].items())
        lines.append(f"{told['engine']}: {told['engine_flags']}")
        if told["pinning_flags"]:
            lines.append(f"to pin the pool: {' or '.join(told['pinning_flags'])}")
        lines += [f"tidegate.yaml, replica: {{{replica}}}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
