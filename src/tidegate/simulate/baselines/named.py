"""The baselines by name, each with its one parameter."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.errors import ConfigError
from tidegate.simulate.baselines.bound import ORDERS, Bound
from tidegate.simulate.baselines.fluid import Fluid
from tidegate.simulate.baselines.gradient import Gradient2
from tidegate.simulate.baselines.hashed import Hashed
from tidegate.simulate.baselines.least_tokens import LeastTokens
from tidegate.simulate.baselines.saturation import SaturationGate
from tidegate.simulate.baselines.semaphore import SMG_PLACES, SMG_QUEUE, SMG_TIMEOUT_S, Semaphore
from tidegate.simulate.front import LedgerFront
from tidegate.simulate.native import Native
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.stage import Policy, Setup, Stage, replicas_of

Builds = Callable[[Stage, list[SimulatedReplica]], LedgerFront]


def cap(argument: str) -> Policy:
    tokens = _whole("cap", argument, None, "prompt tokens that may wait in an engine, such as cap:8000")
    return _policy(lambda stage, replicas: Native(replicas, stage.clients, tokens))


def static(argument: str) -> Policy:
    places = _whole("static", argument, None, "requests in flight on an engine, such as static:32")
    return _policy(lambda stage, replicas: Semaphore(replicas, stage.clients, stage.clock, places))


def smg(argument: str) -> Policy:
    places = _whole("smg", argument, SMG_PLACES, "slots per worker, such as smg:64")
    return _policy(
        lambda stage, replicas: Semaphore(replicas, stage.clients, stage.clock, places, SMG_QUEUE, SMG_TIMEOUT_S)
    )


def gradient2(argument: str) -> Policy:
    _one_of("gradient2", argument, "")
    return _policy(lambda stage, replicas: Gradient2(replicas, stage.clients, stage.clock))


def llm_d(argument: str) -> Policy:
    sheds = _one_of("llm-d", argument, "", "shed") == "shed"
    return _policy(
        lambda stage, replicas: SaturationGate(
            replicas, stage.clients, stage.clock, stage.scenario.slo.ttft_s, sheds=sheds
        )
    )


def least_tokens(argument: str) -> Policy:
    _one_of("least-tokens", argument, "")
    return _policy(lambda stage, replicas: LeastTokens(replicas, stage.clients))


def hashed(argument: str) -> Policy:
    _one_of("hashed", argument, "")
    return _policy(lambda stage, replicas: Hashed(replicas, stage.clients))


def bound(argument: str) -> Policy:
    _one_of("bound", argument, *ORDERS, "fluid")

    def set_up(stage: Stage) -> Setup:
        scenario = stage.scenario
        if scenario.pool is not None:
            raise ConfigError([f"bound: {scenario.name} has several models, and this knows one rate"])
        if scenario.loop is not None:
            raise ConfigError([f"bound: {scenario.name} is a closed loop, whose load is what is served"])
        if argument == "fluid":
            return Setup(Fluid(scenario, stage.clients, stage.clock), replicas_of(stage))
        return Setup(Bound(scenario, stage.clients, argument), replicas_of(stage))

    return set_up


def _policy(builds: Builds) -> Policy:
    def set_up(stage: Stage) -> Setup:
        replicas = replicas_of(stage, isolated=True)
        return Setup(builds(stage, replicas), replicas)

    return set_up


def _whole(name: str, argument: str, default: int | None, meaning: str) -> int:
    if not argument and default is not None:
        return default
    if not argument.isdigit() or int(argument) < 1:
        raise ConfigError([f"{name}:{argument}: expected a whole number of {meaning}"])
    return int(argument)


def _one_of(name: str, argument: str, *known: str) -> str:
    if argument not in known:
        shown = " or ".join(name + (f":{each}" if each else "") for each in known)
        raise ConfigError([f"{name}:{argument}: expected {shown}"])
    return argument


BASELINES: dict[str, Callable[[str], Policy]] = {
    "cap": cap,
    "static": static,
    "gradient2": gradient2,
    "llm-d": llm_d,
    "smg": smg,
    "least-tokens": least_tokens,
    "hashed": hashed,
    "bound": bound,
}
