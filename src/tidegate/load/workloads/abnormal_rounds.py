"""The corpus of abnormal requests, with a sound one behind each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from tidegate.load.ask import Ask
from tidegate.load.workloads.abnormal_case import AbnormalCase
from tidegate.load.workloads.abnormal_corpus import ANSWER_TOKENS, corpus, said

PROBE = AbnormalCase(name="probe", group="probe", body=said("Say hello."))
PATIENCE_S = 60.0
"""Longer than this is a hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbnormalRounds:
    """Round and round. Between any two of them stands a probe: one that fails shows what the one before has broken."""

    context_tokens: int | None = None
    is_overlong_answered: bool = False
    wants_codes: bool = True

    @property
    def title(self) -> str:
        return f"{len(self.cases())} abnormal requests, a sound one behind each"

    def cases(self) -> tuple[AbnormalCase, ...]:
        return tuple(self._expected(case) for case in corpus(self.context_tokens))

    def salted(self, _salt: str) -> AbnormalRounds:
        """Itself: nothing in it is unlike the last time."""
        return self

    def round_length(self) -> int:
        """Asks until all have been sent once."""
        return 2 * len(self.cases())

    def asks(self, _seed: int) -> Iterator[Ask]:
        cases = self.cases()
        for index in count():
            place, is_probe = divmod(index, 2)
            yield _ask(index, PROBE if is_probe else cases[place % len(cases)])

    def _expected(self, case: AbnormalCase) -> AbnormalCase:
        refusal = case.refusal
        if case.group == "over-long" and self.is_overlong_answered:
            refusal = None
        elif refusal is not None and not self.wants_codes:
            refusal = replace(refusal, statuses=refusal.statuses | {422}, codes=frozenset())
        return replace(case, refusal=refusal)


def _ask(index: int, case: AbnormalCase) -> Ask:
    return Ask(
        index=index,
        label=case.group,
        body=case.body,
        path=case.path,
        headers=case.headers,
        is_stream=case.is_stream,
        max_tokens=ANSWER_TOKENS,
        refusal=case.refusal,
        patience_s=PATIENCE_S,
        extra={"case": case.name},
    )
