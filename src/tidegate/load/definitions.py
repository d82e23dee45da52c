"""What each figure means, printed beside it: tools disagree on figures of the same name (TPOT by three times on one
stream), so a number without its definition cannot be compared.

Keys are the fields of ``PhaseFigures``, ``PartFigures``, ``Moment``, ``LengthFigures`` and ``Distribution``, and
``outcomes.NAME`` and ``token_sources.NAME``.
"""

from __future__ import annotations

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.time_slices import LEAST_FOR_P95, MOST_MOMENTS, SLICE_S

LATENCIES = (
    "Of whole answers, degraded ones included: a request without an answer has no latency, it has a rate of its own."
)

OF_PHASES = {
    "phase": "Name of the phase.",
    "kind": "What the phase is for: single, step, burst, soak or load.",
    "target": "The service that was asked.",
    "began_s": "When the phase (its first turn) began, in seconds since the run began.",
    "duration_s": "For how long requests were sent, turns added up. Answers may come later.",
    "users": "Closed loop: so many users, each of whom asks again as soon as the last answer is there.",
    "meant_rate_per_s": "Mean rate that the plan meant, where it is known beforehand.",
    "due_rate_per_s": "Requests that were due, per second of the phase.",
    "sent_rate_per_s": (
        "Requests that were sent, per second of the phase. Below the due rate, it was the generator that could not."
    ),
    "answered_per_s": (
        "Throughput (QPS): successful answers, degraded ones included, that came while requests were sent, per "
        "second. Tools that divide by the time until the last answer show less of a run with one slow answer."
    ),
    "output_tokens_per_s": (
        "Output tokens of successful answers that came while requests were sent, per second; of an answer that "
        "ended later, its part of the time."
    ),
    "all": "All requests of the phase.",
    "labels": "The same by kind of request.",
    "tenants": "The same by tenant.",
    "replicas": "Answers and refusals by the replica that gave them, by the gateway's own word.",
    "codes": "Of errors and refusals: the error's code, else the HTTP status, else the outcome.",
    "inter_chunk": (
        "Inter-chunk latency: time between two reads that brought a part of an answer (events that came together "
        "count once), over all streams. Quantiles to 1 %."
    ),
    "inter_token": (
        "Inter-token latency: the same, each gap divided by the events that its read brought. Tools that count "
        "tokens by a tokenizer of their own get another figure wherever it is not the engine's, down to a median of "
        "0."
    ),
    "lag": (
        "How late the generator sent what was due (open loops). It is part of the latency from when requests were "
        "due, and of no other."
    ),
    "generator_cpu_s": "CPU seconds of all generating processes.",
    "generator_busiest_share": (
        "CPU of the busiest generating process in its busiest five seconds, of the wall-clock time."
    ),
    "recovered_in_s": (
        "From the end of the spike until those who came were served as before it: three slices in a row with P95 "
        "within 25 % (or 50 ms) of that before and at most one point more shed and errors. Nothing: never, or no "
        "spike."
    ),
    "watched_after_spike_s": "For how long the phase went on after its spike.",
    "spike": "When the load of the phase is above the rest: begin and end, seconds from its beginning.",
    "moments": f"The phase in slices of time, at most about {MOST_MOMENTS}.",
    "moment_s": "Width of such a slice.",
    "slice_s": (
        f"Width of the slices over which P95 is compared: {SLICE_S:g} s, wider where they would hold fewer than 40 "
        "answers."
    ),
    "lengths": "Latency over the length of the prompt; lengths double with every other row.",
    "gap_buckets": "Inter-chunk gaps: middle of the bucket, count.",
    "token_sources": "Answers by who counted their tokens.",
    "invalid": "Why the figures tell about the generator and not about the target. No gate is passed by them.",
}

OF_PARTS = {
    "due": "Requests that the plan wanted sent in the phase. Each ends in exactly one outcome.",
    "outcomes": "How the requests ended, counted apart.",
    "late": (
        "Answered, but beyond the objective (TTFT, TPOT or E2E; of the tenant, else of the label, else of the "
        "plan), with TTFT and E2E from when the request was due. A late answer is an answer."
    ),
    "error_rate": (
        "Unexpected, client fault, error, abnormal, broken, timeout and refused, of the requests that were sent, "
        "without those that had to be refused and were. Shed is not among them."
    ),
    "timeout_rate": "Requests whose client left after its patience, of the same.",
    "shed_rate": "Requests refused for load (429, 503, 529), of the same.",
    "degraded_rate": "Requests that got a labelled lesser answer, of the same.",
    "availability": (
        "Answers (degraded ones included), of the same. Shed, HTTP 5xx, network timeouts and empty replies all "
        "count against it."
    ),
    "goodput_per_s": (
        "Whole answers of the model that was asked, within their objective, that came while requests were sent, per "
        "second. Without an objective every such answer is good."
    ),
    "goodput_share": "The same of all that were to be answered, whenever they came.",
    "ttft": (
        "Time to first token: from sending to the first event with a part of the answer (text or tool call; an "
        f"event with a role alone is none). Of streams. {LATENCIES}"
    ),
    "tpot": (
        "Time per output token: (last part - first part) / (tokens - 1), tokens as the engine counted them (usage), "
        "as `vllm bench serve` has it. GuideLLM's TPOT is E2E / tokens and so contains TTFT; AIPerf and inference- "
        "perf count tokens by a tokenizer of their own."
    ),
    "e2e": f"From sending to the end of the answer. {LATENCIES}",
    "scheduled_e2e": (
        "From when the request was due to the end of its answer: a generator that is held up cannot hide the wait "
        "(coordinated omission). In a closed loop: from when its user was free."
    ),
    "worst_gap": (
        "The longest time between two reads of each stream: how long its reader sat before a text that stood still."
    ),
    "queue": "Time in the gateway's queue, by its own word (x-tidegate-queue-ms).",
    "model_time": "E2E without that time, of the answers that tell it.",
    "p95_std_s": (
        f"Standard deviation of the P95 of E2E over slices of the phase with at least {LEAST_FOR_P95} answers; "
        "nothing of fewer than three. An answer belongs to the slice in which it was due."
    ),
    "prompt_tokens": "Prompt tokens of answered requests, as the engine counted them.",
    "output_tokens": "Output tokens of answers: the engine's count, else the number of chunks.",
    "counted_share": "Of answers, how many had their tokens counted by the engine.",
}

OF_DISTRIBUTIONS = {
    "count": "How many values.",
    "mean": "Mean. Never judge by it: a mean of 1 s with a P99 of 10 s is unusable.",
    "std": "Standard deviation over all of them.",
    "least": "The smallest.",
    "p50": "Median: the smallest value that half of them do not exceed. Percentiles are exact, never interpolated.",
    "p90": "90 % do not exceed it.",
    "p95": "95 % do not exceed it.",
    "p99": "99 % do not exceed it; of fewer than 100 values it is the largest.",
    "p999": "99.9 % do not exceed it; of fewer than 1000 values it is the largest.",
    "most": "The largest.",
    "jitter": "P99 / P50.",
}

OF_SLICES = {
    "at_s": "Middle of the slice, in seconds since the run began. Requests belong to the slice in which they were due.",
    "sent": "Requests of the slice that were sent.",
    "answered": "Requests of the slice that were answered, degraded ones included, whenever the answer came.",
    "shed": "Requests of the slice that were refused for load.",
    "errors": "Requests of the slice that an error rate counts.",
    "degraded": "Requests of the slice with a lesser answer.",
    "ttft_p50_s": "Median TTFT.",
    "ttft_p95_s": "P95 of TTFT.",
    "e2e_p50_s": "Median E2E, from sending.",
    "e2e_p95_s": "P95 of E2E, from sending.",
    "e2e_p99_s": "P99 of E2E, from sending.",
    "tokens": "Mean length of these prompts in tokens, as the engine counted them, else as the workload meant.",
}

OF_OUTCOMES = {
    ClientOutcome.OK: "The whole answer, of the model that was asked.",
    ClientOutcome.DEGRADED: "A whole answer, labelled as a lesser one.",
    ClientOutcome.EXPECTED: (
        "Had to be refused (over-long, abnormal), and was, with the status and code that it must get."
    ),
    ClientOutcome.UNEXPECTED: "Had to be refused, and was answered, or refused in another way.",
    ClientOutcome.SHED: "Refused for load: 429, 503 or 529. Nothing was computed.",
    ClientOutcome.CLIENT_FAULT: "Another 4xx, to a request that is right.",
    ClientOutcome.ERROR: "Another 5xx, or an error event in the stream.",
    ClientOutcome.ABNORMAL: "Status 200 and no answer: empty, garbled, no JSON where JSON was asked for.",
    ClientOutcome.BROKEN: "The connection ended before the answer did, or spoke no HTTP.",
    ClientOutcome.TIMEOUT: "The client waited as long as it waits, and left.",
    ClientOutcome.REFUSED: "No connection.",
    ClientOutcome.UNSENT: "Due, and not sent when the run was ended. In no rate.",
}

OF_TOKEN_SOURCES = {
    "usage": "The engine's own count, at the end of its answer.",
    "chunks": (
        "Events with a part of the answer, where the engine counts nothing: right only where each brings one token."
    ),
}

DEFINITIONS: dict[str, str] = {
    **OF_PHASES,
    **OF_PARTS,
    **OF_DISTRIBUTIONS,
    **OF_SLICES,
    **{f"outcomes.{outcome.value}": text for outcome, text in OF_OUTCOMES.items()},
    **{f"token_sources.{name}": text for name, text in OF_TOKEN_SOURCES.items()},
}
"""One for every figure that is printed anywhere."""
