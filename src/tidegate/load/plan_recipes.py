"""From the workloads of a plan file to recipes."""

from __future__ import annotations

from pathlib import Path as FilePath

from tidegate.config.origin import Path
from tidegate.config.problem import Problem
from tidegate.errors import ConfigError
from tidegate.load.ask import Refusal
from tidegate.load.plan_sections import ConversationSection, LengthSection, PlanSection, PrefixSection, WorkloadSection
from tidegate.load.workloads.given_prompts import GivenPrompts, read_prompts
from tidegate.load.workloads.length_draws import Fixed, Lengths, LogNormal, Observed, OneOf, Uniform
from tidegate.load.workloads.recipe import Conversation, Nonce, Recipe, SharedPrefix
from tidegate.simulate.traces import load_trace
from tidegate.wire.header_names import DEADLINE_MS

REFUSALS = frozenset({400, 401, 404, 408, 413, 422})
SHAPES = ("fixed", "uniform", "lognormal", "values", "trace", "mix")


class RecipeMaker:
    """Collects what is wrong; ``recipes`` are only sound where nothing is."""

    def __init__(self, plan: PlanSection, folder: FilePath) -> None:
        self.problems: list[Problem] = []
        self._plan = plan
        self._folder = folder

    def recipes(self) -> dict[str, Recipe]:
        return {name: self._recipe(name, section) for name, section in self._plan.workloads.items()}

    def _tell(self, path: Path, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _recipe(self, label: str, section: WorkloadSection) -> Recipe:
        path: Path = ("workloads", label)
        given = None if section.prompts is None else self._given(section.prompts, path)
        self._check(section, path)
        prompt = self._prompt(section, path)
        headers = tuple((name.lower(), value) for name, value in section.headers.items())
        if section.deadline_ms is not None:
            headers += ((DEADLINE_MS.decode(), str(section.deadline_ms)),)
        codes = section.refused_with
        return Recipe(
            label=label,
            prompt=prompt,
            output=self._lengths(section.output_tokens, (*path, "output_tokens"), is_output=True),
            nonce=Nonce(section.nonce or Nonce.START),
            is_same=section.same or section.text is not None,
            text=section.text or "",
            given=given,
            prefix=_prefix(section.system),
            conversation=self._conversation(section.conversation, path),
            tenant=section.tenant,
            headers=headers,
            stream_share=section.stream_share,
            may_exceed=codes is not None,
            refusal=None if codes is None else Refusal(REFUSALS, frozenset(codes)),
            patience_s=section.patience_s,
            keeps_text=section.keeps_text,
            wants_json=section.wants_json,
        )

    def _prompt(self, section: WorkloadSection, path: Path) -> Lengths:
        if section.prompt_tokens is not None:
            return self._lengths(section.prompt_tokens, (*path, "prompt_tokens"))
        if section.prompts is None and section.text is None:
            self._tell(path, "needs prompt_tokens, prompts or text")
        # English has about four letters a token.
        return Fixed(max(1, len(section.text or "") // 4))

    def _check(self, section: WorkloadSection, path: Path) -> None:
        given = [name for name in ("prompts", "text", "same") if getattr(section, name)]
        if len(given) > 1:
            self._tell((*path, given[1]), f"{' and '.join(given)} exclude each other")
        if section.prompts is not None and (section.conversation or section.system or section.prompt_tokens):
            self._tell((*path, "prompts"), "excludes prompt_tokens, system and conversation: the file says all of it")

    def _given(self, file: str, path: Path) -> GivenPrompts | None:
        try:
            return read_prompts(self._folder / file)
        except ConfigError as error:
            for problem in error.problems:
                self._tell((*path, "prompts"), problem)
            return None

    def _conversation(self, section: ConversationSection | None, path: Path) -> Conversation | None:
        if section is None:
            return None
        turns = self._lengths(section.turns, (*path, "conversation", "turns"))
        return Conversation(turns, section.open_sessions)

    def _lengths(self, section: LengthSection, path: Path, *, is_output: bool = False) -> Lengths:
        given = [name for name in SHAPES if getattr(section, name) is not None]
        if len(given) != 1:
            self._tell(path, f"give a number, or one of {', '.join(SHAPES)}")
            return Fixed(1)
        if section.uniform is not None:
            return self._uniform(section.uniform, (*path, "uniform"))
        if section.lognormal is not None:
            drawn = section.lognormal
            return LogNormal(drawn.median, drawn.sigma, drawn.least, drawn.most)
        if section.values is not None:
            return Observed(tuple(section.values), "a list")
        if section.trace is not None:
            return self._traced(section.trace, path, is_output=is_output)
        if section.mix is not None:
            places = [(*path, "mix", place) for place in range(len(section.mix))]
            parts = zip(section.mix, places, strict=True)
            return OneOf(tuple((each.weight, self._lengths(each, place, is_output=is_output)) for each, place in parts))
        return Fixed(section.fixed or 1)

    def _uniform(self, ends: list[int], path: Path) -> Lengths:
        if ends[0] > ends[1]:
            self._tell(path, f"the first must not be above the second, got {ends}")
            return Fixed(1)
        return Uniform(ends[0], ends[1])

    def _traced(self, name: str, path: Path, *, is_output: bool) -> Lengths:
        try:
            trace = load_trace(name, seed=0)
        except ConfigError as error:
            self._tell((*path, "trace"), error.problems[0])
            return Fixed(1)
        rows = trace.arrivals
        return Observed(tuple(max(1, row.output_tokens if is_output else row.prompt_tokens) for row in rows), name)


def _prefix(section: PrefixSection | None) -> SharedPrefix | None:
    return None if section is None else SharedPrefix(section.tokens, section.count, section.share)
