"""``tidegate load run``: a plan, or all of them, sent to a service and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidegate.cli import load_options as opts
from tidegate.cli.load_options import Amounts
from tidegate.cli.load_play import INVALID, MISSED, LoadPlay, Steps, default_folder
from tidegate.cli.load_targets import Credentials, targets_of
from tidegate.cli.options import AsJson, Schema, print_schema
from tidegate.errors import ConfigError
from tidegate.load.breaking import BreakBars, Climb
from tidegate.load.climbing import climb_until_failure
from tidegate.load.gate_file import find_gates
from tidegate.load.load_run import TURN_S, LoadRun
from tidegate.load.named_plans import find_plan, find_suite
from tidegate.load.plan import Plan
from tidegate.load.result import Result
from tidegate.load.result_file import SCHEMA, read_result, result_json

GatesText = Annotated[
    str | None,
    typer.Option("--gates", help="acceptance, acceptance@ttft, burst, linear, a file; several with commas."),
]
PlannedRate = Annotated[
    float | None, typer.Option("--planned-rate", help="Requests a second at launch: at most 70 % of the peak passes.")
]
RealPeak = Annotated[
    float | None, typer.Option("--real-peak", help="Of production, requests a second: 1.5 times it must be stable.")
]
Suite = Annotated[bool, typer.Option("--suite", help="Every named plan of the evaluation, with one seed.")]
Against = Annotated[
    Path | None, typer.Option("--against", metavar="RESULT.json", help="Of an earlier run, shown beside it.")
]
UntilFailure = Annotated[
    bool, typer.Option("--until-failure", help="More and more users of the plan, until something breaks.")
]
TurnS = Annotated[float, typer.Option("--turn-s", min=0.1, help="Of each target, where several are compared.")]


def run(  # noqa: PLR0913, PLR0917 - a parameter is an option
    urls: opts.Urls = None,
    plan: opts.PlanText = "three-phase",
    gates: GatesText = None,
    planned_rate: PlannedRate = None,
    real_peak: RealPeak = None,
    model: opts.Model = None,
    header: opts.Header = None,
    api_key_env: opts.ApiKeyEnv = None,
    ca_file: opts.CaFile = None,
    admin: opts.Admin = None,
    suite: Suite = False,
    against: Against = None,
    until_failure: UntilFailure = False,
    step_s: opts.StepS = 60.0,
    seed: opts.Seed = 1,
    scale: opts.Scale = 1.0,
    time_scale: opts.TimeScale = 1.0,
    max_prompt_tokens: opts.MostPrompt = None,
    max_output_tokens: opts.MostOutput = None,
    context: opts.Context = None,
    nonce: opts.NonceAt = None,
    stream_share: opts.StreamShare = None,
    deadline_ms: opts.DeadlineMs = None,
    ignore_eos: opts.IgnoreEos = False,
    over_long_answered: opts.OverLong = False,
    tenant_key: opts.TenantKeys = None,
    processes: opts.Processes = None,
    turn_s: TurnS = TURN_S,
    out: opts.Out = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Send a plan to a service, and say what its users would have seen; this is what load URL means.

    Exit status: 0; 1 where a bar of --gates was missed or could not be judged; 3 where the generator, and not the
    service, was measured.
    """
    if schema:
        print_schema(SCHEMA)
        return
    if not urls:
        raise ConfigError([f"load: {opts.NO_URL}"])
    if until_failure and (suite or len(urls) > 1):
        raise ConfigError(["--until-failure: one service and one plan; each breaks at a load of its own"])
    if gates is not None:
        find_gates(gates)
    rates = {"planned_rate_per_s": planned_rate, "real_peak_per_s": real_peak}
    series = Series(gates, rates, out or default_folder(), suite, Console(stderr=as_json))
    series.earlier = None if against is None else read_result(against)
    series.climb = Climb(first_users=opts.FIRST_USERS) if until_failure else None
    keys = opts.tenant_keys(tenant_key)
    found = targets_of(urls, Credentials(api_key_env, header or (), ca_file), model, admin)
    amounts = (seed, scale, time_scale, max_prompt_tokens, max_output_tokens, context)
    wanted = Amounts(*amounts, nonce, stream_share, deadline_ms, ignore_eos, over_long_answered, keys).options(found)
    play = partial(LoadPlay, targets=[target for target, _ in found], processes=processes, turn_s=turn_s)
    series.play(play, find_suite(wanted) if suite else (find_plan(plan, wanted),), step_s)
    if as_json:
        typer.echo(series.json())
    raise typer.Exit(max(map(status_of, series.results)))


@dataclass(slots=True)
class Series:
    """One plan or several, one after the other."""

    gates: str | None
    """None: those that a plan's file brings."""
    rates: Mapping[str, float | None]
    """What some bars are held against, by their names in ``Plan.notes``."""
    folder: Path
    has_several: bool
    console: Console
    earlier: Result | None = None
    climb: Climb | None = None
    """Plays users in place of the plan's phases."""
    results: list[Result] = field(default_factory=list)

    def play(self, make: Callable[..., LoadPlay], plans: Sequence[Plan], step_s: float) -> None:
        """Until a signal comes."""
        for plan in plans:
            gates = self.gates or plan.notes.get("gates")
            played = make(
                plan=self._noted(plan),
                folder=self.folder / plan.name if self.has_several else self.folder,
                console=self.console,
                gates=find_gates(gates) if gates else None,
                against=self.earlier,
                steps=self._steps(plan, step_s),
                finish=self._finish,
            )
            self.results.append(played.play())
            if played.is_stopped:
                return

    def json(self) -> str:
        """One object, or a list of them where several plans were played."""
        shown = [result_json(result).decode().rstrip() for result in self.results]
        return f"[{','.join(shown)}]" if self.has_several else shown[0]

    def _noted(self, plan: Plan) -> Plan:
        told = {key: f"{value:g}" for key, value in self.rates.items() if value is not None}
        return replace(plan, notes={**plan.notes, **told})

    def _steps(self, plan: Plan, step_s: float) -> Steps:
        if self.climb is None:
            return LoadRun.play_all
        if plan.objective.e2e_s is not None:
            # Who plans for answers of a minute has not broken after ten seconds.
            self.climb.bars = BreakBars(p99_s=plan.objective.e2e_s)
        return partial(climb_until_failure, climb=self.climb, step_s=step_s)

    def _finish(self, result: Result) -> None:
        if self.climb is not None:
            result.break_point = self.climb.told()
            result.notes.append(f"break point: {result.break_point['why']}")


def status_of(result: Result) -> int:
    """The exit status that one run wants."""
    if result.invalid:
        return INVALID
    return MISSED if result.passed is False else 0
