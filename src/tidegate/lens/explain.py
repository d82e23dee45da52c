"""A row in sentences: why a request waited, moved, was refused or failed, and where its time went."""

from __future__ import annotations

from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.token_source import TokenSource

WAITED_FOR: dict[Reason, str] = {
    Reason.BEHIND_OTHERS: "others were in the queue before it",
    Reason.SLOTS: "no replica had enough free KV slots for its reservation",
    Reason.SEQUENCES: "every replica ran as many sequences as its engine takes",
    Reason.LIMIT: "every replica was at its adaptive limit",
    Reason.PREFILL: "too many prompt tokens were queued for prefill on every replica",
    Reason.BREAKER: "the breaker of every replica was open",
    Reason.HELD: "it would have stalled those beside it, and no replica had little enough to do",
    Reason.CLASS_SHARE: "its class held as much of the replicas as it may, or the rest was kept for other classes",
    Reason.MODEL_CONCURRENCY: "its model ran as many sequences as it may",
    Reason.GROUP_SHARE: "its model's part of the shared memory was in use, and the rest was kept for other models",
    Reason.NO_REPLICA: "no healthy replica served the model",
}

REFUSED: dict[Reason, str] = {
    Reason.UNKNOWN_MODEL: "no upstream has this model name; GET /v1/models lists those that exist",
    Reason.NEVER_FITS: "prompt and output are longer than the model's context; shorten the prompt or lower max_tokens",
    Reason.POOL_TOO_SMALL: "it fits the context, but no replica's whole KV pool holds it; lower max_tokens or n",
    Reason.MARKED: "its session, user, source or model was under a mark",
    Reason.BLOCKED: "its session, user, tenant or source was blocked",
    Reason.QUOTA: "its tenant had used up its quota",
    Reason.MODEL_RATE: "the model's own rate, which all tenants share, was used up",
    Reason.QUEUE_FULL: "the queue held as many requests as it may",
    Reason.QUEUE_TOKENS: "the queue held as many prompt tokens as it may",
    Reason.QUEUE_BYTES: "the queue held as many bytes as it may",
    Reason.DEADLINE_PASSED: "its deadline had passed",
    Reason.DEADLINE_UNREACHABLE: "the predicted wait was longer than its deadline allows",
    Reason.QUEUE_TIMEOUT: "it stood in the queue for as long as a request of its class may",
    Reason.NO_REPLICA: "no healthy replica served the model",
    Reason.RETRY_ALLOWANCE: "an attempt had failed, and the allowance for retries was spent",
    Reason.ATTEMPT_FAILED: "an attempt had failed, and no other replica could try again",
    Reason.SHUTTING_DOWN: "the gateway was shutting down",
}

ENDED: dict[Outcome, str] = {
    Outcome.OK: "The answer was complete.",
    Outcome.CLIENT_LEFT: "The client left before the answer was complete.",
    Outcome.CLIENT_FAULT: "The engine said that the request itself is wrong (4xx).",
    Outcome.PUSHBACK: "The engine said that it is full (429, 503 or 529).",
    Outcome.CONNECT_FAILED: "No connection to the engine could be made.",
    Outcome.ENGINE_ERROR: "The engine answered 5xx, or closed the connection before its first byte.",
    Outcome.CUT: "The engine's connection ended in the middle of the answer.",
    Outcome.FIRST_BYTE_TIMEOUT: "The engine's first byte did not come in time.",
    Outcome.GAP_TIMEOUT: "The engine fell silent in the middle of the answer.",
    Outcome.TOTAL_TIMEOUT: "The answer was not complete within the time for the whole request.",
    Outcome.INVALID_OUTPUT: "The engine's output did not pass its check.",
    Outcome.OUTRUN: "Another attempt of the same request answered first.",
    Outcome.SHUTDOWN: "The gateway stopped before the answer was complete.",
}


COUNTED_BY: dict[TokenSource, str] = {
    TokenSource.TOKENIZER: "the upstream's tokenizer file",
    TokenSource.ENGINE: "the engine's tokenizer",
}

ALTERED = {
    "truncated_input": "it was shortened",
    "route_long": "it went to a model with a longer one",
}
"""By the label of what was done to a prompt that was too long."""

REUSED = {
    "joined": "It came while another request under its Idempotency-Key ran, and got the answer of that one,",
    "replayed": "It came after another request under its Idempotency-Key had ended, and got the answer of that one,",
}


def explain(row: Row) -> list[str]:
    """Sentences in the order of the request's life."""
    sentences = [_headline(row)]
    if row.reuse:
        sentences.append(f"{REUSED[row.reuse]} {row.original_id}: nothing was computed or charged for it.")
    elif row.upstream:
        sentences += [_size(row), *_before_admission(row), *_after_admission(row), *_ending(row)]
        sentences += [*_problems(row), _phases(row)]
    return sentences


def phases_s(row: Row) -> dict[str, float]:
    """Seconds in each phase it reached, in order: queue, connect, first_token, answer."""
    moments = {
        "queue": (row.queued_at, row.admitted_at or row.closed_at),
        "connect": (row.admitted_at, row.sent_at),
        "first_token": (row.sent_at, row.first_token_at or row.closed_at),
        "answer": (row.first_token_at, row.closed_at),
    }
    return {phase: end - start for phase, (start, end) in moments.items() if start and end}


def _headline(row: Row) -> str:
    took = seconds(row.closed_at - row.arrived_at)
    if not row.upstream:
        return (
            f"Request {row.request_id} ({row.route}) was refused at the edge: {row.status} ({row.code}) after {took}."
        )
    if row.refused is not None and row.degraded is None:
        end = f"was refused with {row.status} ({row.refused.value}) after {took}"
    elif row.status == 0 or row.outcome is Outcome.CLIENT_LEFT:
        end = f"lost its client after {took}"
    else:
        end = f"was answered {row.status} after {took}"
    who = f"class {row.service_class}, tenant {row.tenant}"
    return f"Request {row.request_id} ({row.route}, model {row.upstream}, {who}) {end}."


def _size(row: Row) -> str:
    bound = "no output bound" if row.max_tokens is None else f"at most {row.max_tokens} output tokens"
    each = "" if row.sequences <= 1 else f" for each of {row.sequences} sequences"
    slots = f"; it reserved {row.reserved_slots} slots" if row.reserved_slots else ""
    cached = (
        f"; {row.cached_tokens} of the prompt's tokens were expected in the replica's cache"
        if row.cached_tokens
        else ""
    )
    return f"It brought {row.prompt_tokens} prompt tokens{_how_counted(row)} and {bound}{each}{slots}{cached}."


def _how_counted(row: Row) -> str:
    if row.counted_by is TokenSource.CLIENT:
        return " (sent as token ids)"
    known = [] if row.counted_tokens is None else [f"{row.counted_tokens} by {COUNTED_BY[row.counted_by]}"]
    if row.is_prompt_told:
        known.append(f"{row.prompt_tokens} as the engine reported")
    return f" (estimated {row.estimated_tokens}; {', '.join(known) or 'nobody counted'})"


def _before_admission(row: Row) -> list[str]:
    sentences = []
    if row.in_burst:
        sentences.append("It came in a burst: more requests than usual arrived for its model.")
    if row.repeat:
        ago = seconds(row.arrived_at - row.first_arrived_at)
        sentences.append(f"Its client had come {ago} before under the same key and got nothing, so it kept its place.")
    if row.queued_at:
        cause = "" if row.waited_for is None else f", because {WAITED_FOR[row.waited_for]}"
        predicted = f" (predicted: {seconds(row.predicted_wait_s)})" if row.predicted_wait_s else ""
        sentences.append(f"It waited {seconds(phases_s(row)['queue'])} in the queue{predicted}{cause}.")
    elif row.admitted_at:
        sentences.append("It did not wait: nobody stood before it and a replica had room.")
    return sentences


def _after_admission(row: Row) -> list[str]:
    if not row.attempts:
        return []
    if row.attempts == 1:
        return [f"It ran on replica {row.replica}."]
    if row.continuations:
        often = "" if row.continuations == 1 else f", {row.continuations} times"
        return [f"It began on replica {row.continued_from}, which failed, and went on{often}: on {row.replica}."]
    return [f"It moved: attempt {row.attempts} ran on replica {row.replica}, after the one before had failed."]


def _ending(row: Row) -> list[str]:
    sentences = []
    if row.outcome is not None:
        sentences.append(ENDED[row.outcome])
    if row.refused is not None and row.degraded is not None:
        sentences.append(f"It would have been refused because {REFUSED[row.refused]}.")
    elif row.refused is not None:
        again = f" It was told to come back after {seconds(row.retry_after_s)}." if row.retry_after_s else ""
        sentences.append(f"It was refused because {REFUSED[row.refused]}.{again}")
    if row.degraded is not None and row.degraded not in ALTERED:
        served_by = f", from {row.served_by}" if row.served_by else ""
        sentences.append(f"What it got was a lesser answer, by this rung of the ladder: {row.degraded}{served_by}.")
    if row.is_stored:
        sentences.append("It was answered from the cache, before any engine was asked.")
    if row.is_late:
        sentences.append(f"It was late: its deadline was {seconds(row.deadline_s or 0.0)} after arrival.")
    if row.refused_in_stream:
        sentences.append("The error went out as an event, because heartbeats had already opened the stream.")
    return sentences


def _problems(row: Row) -> list[str]:
    """What was wrong with its prompt and with its answer."""
    sentences = []
    if row.degraded in ALTERED:
        sentences.append(f"Its prompt was longer than the model's context, so {ALTERED[row.degraded]}.")
    if row.input_problem:
        sentences.append(f"It was passed on though something is wrong with it: {row.input_problem}.")
    if row.output_problem:
        sentences.append(f"Its answer was not as it should be: {row.output_problem}.")
    return sentences


def _phases(row: Row) -> str:
    phases = ", ".join(f"{phase.replace('_', ' ')} {seconds(spent_s)}" for phase, spent_s in phases_s(row).items())
    return f"Time by phase: {phases or 'none'}; {row.output_tokens} output tokens."


def seconds(value_s: float) -> str:
    """Three significant figures, in ms below one second."""
    return f"{value_s * 1000:.3g} ms" if abs(value_s) < 0.9995 else f"{value_s:.3g} s"
