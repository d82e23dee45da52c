"""``tidegate simulate calibrate``: a simulated engine fitted to the records of a load run, held against the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.fitted import Fitted
from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.errors import ConfigError
from tidegate.load.calibration_rows import CalibrationRows, calibration_rows
from tidegate.load.records_file import read_records
from tidegate.simulate.calibrated_engine import EngineFile, Sent, costs_ms, write_engine_file
from tidegate.simulate.calibration import MOST_ROWS, Sizes, calibrate
from tidegate.simulate.fit_parts import by_blocks, by_phases
from tidegate.simulate.likeness import likenesses
from tidegate.simulate.load_replay import replay

FIELDS = {
    "records": "the file that was read",
    "simulated": "always true: of the figures below, those called simulated_s come from the fitted model",
    "step_ms": "fitted costs in milliseconds: fixed per step, prefill per prompt token, sequence per sequence in the "
    "batch, context per KV token read, quadratic per prompt token and earlier token",
    "overhead_ms": "between sending and the engine's having a request; holds up no step",
    "max_sequences": "given, or the one of several that fits best",
    "chunk_tokens": "prompt tokens of one step: given, or the one of several that fits best",
    "context_tokens": "given, or null",
    "kv_tokens": "given, or enough for all",
    "fitted": "requests that were fitted",
    "held_out": "requests whose times were not looked at while fitting",
    "left_out": "requests of the records that were not played, by reason",
    "check[]": "of the held-out requests, by phase: metric (ttft, tpot, e2e), share (quantile), count, measured_s, "
    "simulated_s, error (relative to what was measured)",
    "worst_error": "the largest of those, without its sign",
    "out": "the file that --out wrote, or null",
}


def calibrate_command(  # noqa: PLR0913, PLR0917  # Typer wants one parameter for each option
    records: Annotated[
        Path | None, typer.Argument(help="records.jsonl.gz or records.parquet of a tidegate load run.")
    ] = None,
    sequences: Annotated[
        int | None, typer.Option("--engine-sequences", min=1, help="Most sequences at once. Default: found by trying.")
    ] = None,
    chunk: Annotated[
        int | None, typer.Option("--chunk", min=1, help="Most tokens of one step. Default: found by trying.")
    ] = None,
    context: Annotated[int | None, typer.Option("--context", min=1, help="Tokens of one sequence at most.")] = None,
    kv_tokens: Annotated[int | None, typer.Option("--kv-tokens", min=1, help="KV pool. Default: never short.")] = None,
    target: Annotated[str | None, typer.Option(help="Which, where the records are of several.")] = None,
    fit: Annotated[
        str | None,
        typer.Option(metavar="PHASE,...", help="Fit these, by the beginnings of their names, and check the others."),
    ] = None,
    within: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Exit with 1 where a checked P50 or P95 is further off.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Keep engine and traffic for own-engine.")
    ] = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Fit the step model of a simulated engine to a load run.

    Half of the run is fitted, the other half is played by the fitted engine and held against what was measured.
    """
    if schema:
        print_schema(FIELDS)
        return
    if records is None:
        raise ConfigError(["simulate calibrate: name the records of a load run (tidegate load URL --plan calibration)"])
    sizes = Sizes(max_sequences=sequences, chunk_tokens=chunk, context_tokens=context, kv_tokens=kv_tokens)
    phases = None if fit is None else [each.strip() for each in fit.split(",") if each.strip()]
    found = fitted(str(records), calibration_rows(read_records(records), target), sizes, phases)
    if out is not None:
        write_engine_file(out, engine_file(found))
    if as_json:
        print_json(_plain(found, out))
    else:
        # The table needs rich, which --json does without.
        from tidegate.cli.calibration_table import print_fitted  # noqa: PLC0415  # see above

        print_fitted(found, out)
    if within is not None and found.worst_error * 100 > within:
        raise ConfigError(
            [f"the fitted engine is {found.worst_error:.1%} off at worst; --within {within:g} allows less"]
        )


def fitted(records: str, given: CalibrationRows, sizes: Sizes, phases: Sequence[str] | None) -> Fitted:
    """Raises ConfigError where there is too little to fit to."""
    chosen = cut(given)
    rows = chosen.rows
    parts = by_phases(rows, phases) if phases else by_blocks(rows)
    found = calibrate(rows, parts[0], sizes)
    played = replay(rows, found.engine)
    held_out = sorted(parts[1])
    check = likenesses([rows[index] for index in held_out], [played[index] for index in held_out])
    return Fitted(
        records=records, rows=rows, left_out=dict(chosen.left_out), parts=parts, calibration=found, check=check
    )


def cut(given: CalibrationRows) -> CalibrationRows:
    """As many as a fit needs."""
    more = len(given.rows) - MOST_ROWS
    if more <= 0:
        return given
    return CalibrationRows(given.rows[:MOST_ROWS], given.left_out + Counter({f"after the first {MOST_ROWS}": more}))


def engine_file(found: Fitted) -> EngineFile:
    config, rows = found.calibration.engine.config, found.rows
    began = rows[0].at
    return EngineFile(
        step_ms=costs_ms(config.step),
        quadratic_from_tokens=config.step.quadratic_from_tokens,
        max_sequences=config.max_sequences,
        chunk_tokens=config.chunk_tokens,
        kv_tokens=config.kv_tokens,
        context_tokens=config.context_tokens,
        overhead_ms=found.calibration.engine.overhead_s * 1e3,
        source=found.records,
        errors={f"{each.phase}/{each.metric}/p{each.share * 100:g}": round(each.error, 4) for each in found.check},
        traffic=[
            Sent(row.at - began, row.prompt_tokens, row.output_tokens, row.max_tokens, row.label, row.tenant)
            for row in rows
            if row.is_whole
        ],
    )


def _plain(found: Fitted, out: Path | None) -> dict[str, Any]:
    config = found.calibration.engine.config
    return {
        "records": found.records,
        "simulated": True,
        "step_ms": costs_ms(config.step),
        "overhead_ms": found.calibration.engine.overhead_s * 1e3,
        "max_sequences": config.max_sequences,
        "chunk_tokens": config.chunk_tokens,
        "context_tokens": config.context_tokens,
        "kv_tokens": config.kv_tokens,
        "fitted": len(found.parts[0]),
        "held_out": len(found.parts[1]),
        "left_out": found.left_out,
        "check": [
            {
                "phase": each.phase,
                "metric": each.metric,
                "share": each.share,
                "count": each.count,
                "measured_s": each.measured_s,
                "simulated_s": each.simulated_s,
                "error": each.error,
            }
            for each in found.check
        ],
        "worst_error": found.worst_error,
        "out": None if out is None else str(out),
    }
