"""The same question many times: are the answers the same (SPEC S1-55, S2-37)?

Equality alone is no bar, also at temperature 0: kernels sum in another order where the batch has another size. So
answers are compared by the share that is the same to the letter, by how similar two of them are, and by their form.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from random import Random
from statistics import fmean
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.played import Played
from tidegate.load.prompt_lengths import tokens_of
from tidegate.load.sample import Sample
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Problem
from tidegate.policy.output.schema import misfit
from tidegate.policy.output.text_check import TextCheck
from tidegate.simulate.quantile import quantile

MOST_PAIRS = 500
"""Of different answers, drawn by lot where there are more."""
MOST_WORDS = 1000
"""Of one answer, that are compared."""
RUN_WORDS = 4
LEAST_WORDS = 24
LOOP_SHARE = 0.5
"""So many runs of four words have been said before: a loop, where only its bound ended the answer."""
LENGTH = "length"


def consistency(played: Sequence[Played], schema: Any = None, seed: int = 0) -> dict[str, Any]:
    """Figures by phase, label and target, of all groups of samples with texts; empty: no answer was kept.

    ``schema``: a JSON Schema that answers should fit. Where only one phase, one label or one target kept answers, it
    is no level of the result. Later groups are also held against the first one of their target with prompts of the
    same length: the same question, asked under another load.
    """
    groups: defaultdict[Key, list[Sample]] = defaultdict(list)
    for turn in played:
        for sample in turn.samples:
            if sample.is_answered or sample.outcome is ClientOutcome.ABNORMAL:
                groups[sample.phase, sample.label, sample.target].append(sample)
    kept = {key: part for key, part in groups.items() if any(sample.text for sample in part)}
    levels = [len({key[level] for key in kept}) > 1 for level in range(3)]
    names = {key: _name(key, levels) for key in kept}
    found = {names[key]: of_answers(part, schema, seed) for key, part in kept.items()}
    firsts: dict[tuple[str, float], Key] = {}
    for key, part in kept.items():
        first = firsts.setdefault((key[2], _prompt_tokens(part)), key)
        if first is not key:
            found[names[key]] |= _beside(kept[first], part, names[first], seed)
    return found.get("", found)


Key = tuple[str, str, str]


def _name(key: Key, levels: Sequence[bool]) -> str:
    """What tells the group apart. A label that is the phase's name says nothing more."""
    words = dict.fromkeys(word for word, is_level in zip(key, levels, strict=True) if is_level)
    return " · ".join(words)


def _prompt_tokens(samples: Sequence[Sample]) -> float:
    return quantile(sorted(float(tokens_of(sample)) for sample in samples), 0.5)


def _beside(first: Sequence[Sample], second: Sequence[Sample], name: str, seed: int) -> dict[str, float]:
    """Pairs of one answer from each, drawn by lot, and the share of what the first group said most."""
    lot = Random(f"{seed}/beside")  # noqa: S311 - a sample of pairs, not a secret
    pairs = [(lot.choice(first).text, lot.choice(second).text) for _ in range(MOST_PAIRS)]
    usual = Counter(sample.text for sample in first).most_common(1)[0][0]
    return {
        f"same_as_{name}_share": fmean(sample.text == usual for sample in second),
        f"to_{name}_similarity": fmean(1.0 if a == b else similarity(_words(a), _words(b)) for a, b in pairs),
    }


def _words(text: str) -> list[str]:
    return text.split()[:MOST_WORDS]


def of_answers(samples: Sequence[Sample], schema: Any = None, seed: int = 0) -> dict[str, Any]:
    """Of answers to one question, at least one; what came with status 200 and was no answer is among them."""
    texts = [sample.text for sample in samples]
    counts = Counter(texts)
    lengths = sorted(map(len, texts))
    return {
        "answers": len(texts),
        "distinct_answers": len(counts),
        "same_share": counts.most_common(1)[0][1] / len(texts),
        **_similarities(texts, seed),
        "characters_least": lengths[0],
        "characters_p50": quantile(lengths, 0.5),
        "characters_most": lengths[-1],
        "empty_share": fmean(not text.strip() for text in texts),
        "bound_share": fmean(sample.finish_reason == LENGTH for sample in samples),
        "loop_share": fmean(is_loop(sample.text, sample.finish_reason) for sample in samples),
        "garbled_share": fmean(_problem(text) is Problem.GARBLED for text in texts),
        **_forms(texts, schema, is_wanted=any(sample.code == Problem.FORMAT for sample in samples)),
    }


def _similarities(texts: Sequence[str], seed: int) -> dict[str, float]:
    """Of two answers each, drawn from all of them: equal ones count as they come."""
    size = len(texts)
    if size < 2:
        return {}
    lot = Random(f"{seed}/pairs")  # noqa: S311 - a sample of pairs, not a secret
    every = size * (size - 1) // 2
    pairs = (
        [(a, b) for a in range(size) for b in range(a)]
        if every <= MOST_PAIRS
        else [tuple(lot.sample(range(size), 2)) for _ in range(MOST_PAIRS)]
    )
    words = list(map(_words, texts))
    found = [1.0 if texts[a] == texts[b] else similarity(words[a], words[b]) for a, b in pairs]
    return {"mean_similarity": fmean(found), "least_similarity": min(found), "compared_pairs": len(found)}


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of words that stand in both in the same order (Ratcliff and Obershelp): 1 the same, 0 nothing of it."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def is_loop(text: str, finish_reason: str) -> bool:
    """Whether sampling may have run in a circle (SPEC S1-78): a long exact repetition, or one that only the bound of
    the answer ended."""
    if _problem(text) is Problem.REPETITIVE:
        return True
    words = text.split()
    if finish_reason != LENGTH or len(words) < LEAST_WORDS:
        return False
    runs = [tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]
    return 1 - len(set(runs)) / len(runs) >= LOOP_SHARE


def _problem(text: str) -> Problem | None:
    """The gateway's own check of answers."""
    check = TextCheck(OutputConfig(), is_json=False)
    check.feed(text)
    finding = check.end()
    return finding.problem if finding else None


def _forms(texts: Sequence[str], schema: Any, *, is_wanted: bool) -> dict[str, float]:
    """Only where JSON is what was wanted: by a schema, by a reply that was none, or by any that is."""
    values = [_json(text) for text in texts]
    if schema is None and not is_wanted and all(value is None for value in values):
        return {}
    found = {"json_share": fmean(value is not None for value in values)}
    if schema is not None:
        found["schema_valid_share"] = fmean(value is not None and not misfit(value, schema) for value in values)
    return found


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
