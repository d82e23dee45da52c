"""The named scenarios. ``NAME`` or ``NAME@ARGUMENT``; load runs use the same traffic."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from tidegate.errors import ConfigError
from tidegate.simulate.scenario import ScenarioBuilder
from tidegate.simulate.scenarios.agents import AgentChain
from tidegate.simulate.scenarios.campaign import campaign, campaign_bare, retry_storm
from tidegate.simulate.scenarios.essays import EssayPeak
from tidegate.simulate.scenarios.fallback import Fallback
from tidegate.simulate.scenarios.giant import GiantAmongShorts
from tidegate.simulate.scenarios.jitter import Jitter
from tidegate.simulate.scenarios.mixed import Mixed
from tidegate.simulate.scenarios.own_engine import OwnEngine
from tidegate.simulate.scenarios.questions import ThousandPerSecond
from tidegate.simulate.scenarios.replay import azure_code, azure_conv, mooncake
from tidegate.simulate.scenarios.servegen import ServeGen
from tidegate.simulate.scenarios.sessions import Sessions
from tidegate.simulate.scenarios.silence import SilenceThenBurst
from tidegate.simulate.scenarios.steady import Steady
from tidegate.simulate.scenarios.three_models import ThreeModels
from tidegate.simulate.scenarios.tight_memory import TightMemory
from tidegate.simulate.scenarios.video import Video

SCENARIOS: dict[str, Callable[[str], ScenarioBuilder]] = {
    "steady": Steady.parse,
    "campaign": campaign,
    "campaign-bare": campaign_bare,
    "retry-storm": retry_storm,
    "silence-then-200": SilenceThenBurst.parse,
    "essay-peak": EssayPeak.parse,
    "agent-chain": AgentChain.parse,
    "fallback": Fallback.parse,
    "giant-and-99": GiantAmongShorts.parse,
    "three-models": ThreeModels.parse,
    "tight-memory": TightMemory.parse,
    "jitter": Jitter.parse,
    "mixed-2x": Mixed.twice,
    "mixed": Mixed.parse,
    "servegen": ServeGen.parse,
    "burst-1000": ThousandPerSecond.parse,
    "video-12": Video.parse,
    "sessions": Sessions.parse,
    "azure-conv": azure_conv,
    "azure-code": azure_code,
    "mooncake": mooncake,
    "own-engine": OwnEngine.parse,
}

SCENARIO_HELP: dict[str, str] = {
    "steady": "4 x A100, chat lengths, Poisson; steady@0.75 = share of capacity, /one-slow: one of them 1.5 x slow, "
    "/long: half an hour with clients that leave after 7 s",
    "campaign": "4 x A100 at 60 %, at 40 s a step to 4.2 x that for 17 s, clients leave after 7 s; two engines of a "
    "lighter model for tidegate:ladder; @one-light: one of them, 15 s; @six: two more engines instead",
    "campaign-bare": "4 x A100, 80 % short and 20 % long, at 40 s a step to 4.2 x base for 15 s; @heedless: "
    "clients ignore Retry-After",
    "retry-storm": "4 x A100 at 70 %, for 10 s 4.2 x that, clients leave after 5 s and call again at once; @zombie: "
    "engines that do not notice that clients left; @heeding: clients that heed Retry-After; @light: with engines of a "
    "lighter model",
    "silence-then-200": "3 s of silence, then 200 requests in the fourth second; @light: with an engine of a lighter "
    "model",
    "essay-peak": "120 essays a second on two H100 that carry 230 short ones; for two minutes a part has 2 000 "
    "characters (@S: a share of S); an engine of a lighter model for tidegate:ladder",
    "agent-chain": "users of an agent, each four calls one after the other, wanted in 2 s; from 30 to 90 s the engine "
    "of the first step is slow (@F: F x); engines of lighter models for tidegate:ladder",
    "fallback": "one model whose every step takes ten times as long from 20 s on, answers wanted in 1.5 s; an engine "
    "of a lighter model for tidegate:ladder",
    "giant-and-99": "a 12k prompt among 99 short ones; @spread over 10 s, @without the giant",
    "three-models": "images, small text and code on one A100's memory, with a surge of images; @K: K x the usual rate; "
    "policies: native and tidegate:isolated (a pool each), tidegate (one budget)",
    "tight-memory": "one A10, clients that declare ten times what they get; @R: requests per second; policy "
    "tidegate:learned reserves what answers turn out to have",
    "jitter": "100 users in a closed loop on six A100, one of them 1.5 x slow; @equal: all alike",
    "mixed-2x": "azure-conv@2, half of class interactive with TTFT 1.5 s, half of class relaxed with 20 s",
    "mixed": "the same at mixed@K times the trace",
    "servegen": "tenants of very different size on four A100; servegen@0.9 = share of capacity, /greedy: an average "
    "tenant sends 50 x its usual traffic from 60 s on",
    "burst-1000": "1000 questions a second for 10 s on A10s that carry 250, with some contracts; @without them",
    "video-12": "12 streams x 25 frames a second on one engine, frames worthless after 200 ms; @N streams",
    "sessions": "conversations on four A100 with a prefix cache; @R: turns per second; policy tidegate:no-affinity "
    "does not ask who has read a prompt",
    "azure-conv": "Azure 2023 chat trace on one A100; azure-conv@K runs it K times as fast, @K/N on N engines, @K/slow "
    "on engines a quarter slower than their model says",
    "azure-code": "Azure 2023 code trace (28 x bursts) on four A100; @K, @K/N, @K/slow as above",
    "mooncake": "Mooncake conversation trace (long prompts) on eight A100; @K, @K/N, @K/slow as above, @K/cached "
    "on engines with a prefix cache",
    "own-engine": "your own traffic on your own engine: own-engine@FILE of simulate calibrate --out; @K/FILE: K times "
    "as fast, @KxN/FILE on N engines",
}


def find_scenario(text: str) -> ScenarioBuilder:
    """Raises ConfigError that names the known scenarios, or what is wrong with the argument."""
    name, _, argument = text.partition("@")
    if name not in SCENARIOS:
        close = get_close_matches(name, SCENARIOS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(SCENARIOS)}"
        raise ConfigError([f"unknown scenario {name!r}: {hint}"])
    return SCENARIOS[name](argument)
