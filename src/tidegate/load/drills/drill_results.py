"""What one run of one or several drills came to, and the JSON that it is kept as."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from tidegate.errors import ConfigError
from tidegate.load.drills.findings import Findings


@dataclass(slots=True, kw_only=True)
class DrillResults:
    began: str
    """ISO 8601, with the time zone."""
    command: str
    deployment: str
    seed: int
    is_short: bool
    rate_per_s: float
    findings: list[Findings] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Every drill that could run has met its bars, and at least one could. A skipped one is told, and no pass."""
        played = [each for each in self.findings if each.passed is not None]
        return bool(played) and all(each.passed for each in played)

    def to_json(self) -> bytes:
        plain = asdict(self) | {"passed": self.passed}
        for row, each in zip(plain["findings"], self.findings, strict=True):
            row["passed"] = each.passed
        return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def read_results(content: bytes, source: str) -> DrillResults:
    """What ``to_json`` wrote. Raises ConfigError."""
    try:
        plain: dict[str, Any] = msgspec.json.decode(content)
        return msgspec.convert(plain, DrillResults)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigError([f"{source}: no results of drills: {error}"]) from error


SCHEMA = {
    "began": "when the run began, ISO 8601",
    "command": "the command line that makes it again",
    "deployment": "own, or the name in the drill file",
    "passed": "every drill that could run has met its bars, and at least one could",
    "findings[]": "one per drill",
    "findings[].drill": "its name",
    "findings[].rows": "of the requirements: what it proves",
    "findings[].passed": "true, false, or null: skipped",
    "findings[].skipped": "why it could not run here",
    "findings[].aborted": "why it was ended early; everything was put back",
    "findings[].left_broken": "what could not be put back: somebody has to",
    "findings[].baseline_p95_s": "P95 of E2E, from when requests were due, before the fault",
    "findings[].detected_s": "from the fault until the last request that failed during it was due; 0: none failed; "
    "null: they failed until it was healed",
    "findings[].recovered_s": "from the healing until P95 and errors were back at the baseline; null: not seen",
    "findings[].due": "requests that were under way at the fault, or due later; the counts below are of these",
    "findings[].outcomes": "how they ended, by kind (docs/load.md)",
    "findings[].lost": "no answer, or one that was cut: broken, timed out, refused connections",
    "findings[].late": "answered, and more than three times as slow as the baseline's P95",
    "findings[].duplicated": "request ids for which more than one whole answer was computed or charged; null: nobody "
    "could tell",
    "findings[].longest_s": "the longest that any client waited for its end",
    "findings[].restarts[]": "each restarted replica: model, caches, memory, first request (times in seconds)",
    "findings[].figures": "the drill's own",
    "findings[].verdicts[]": "each bar, what was measured, and whether it was met",
    "findings[].moments[]": "by second: when it began, answers, errors, P95 of E2E",
}
