"""Whether a phase tells about its target, or about the generator."""

from __future__ import annotations

from statistics import median

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.figure_text import seconds_text, share_text
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.simulate.quantile import quantile

LEAST_LAG_BOUND_S = 0.010
LAG_SHARE_OF_TTFT = 0.1
"""The P99 of lag may be 10 ms, or a tenth of the median TTFT where that is more: it is in every time that counts from
the schedule, and a generator that is late to send is late to read as well."""
LATE_SHARE = 0.01
MOST_BUSY_SHARE = 0.8
LEAST_SENT_SHARE = 0.98


def problems(played: Played, phase: Phase) -> tuple[str, ...]:
    """What is wrong with it, in words; empty: nothing."""
    return tuple(
        text for text in (_lag(played, phase), _busy(played), _unsent(played), _late_end(played, phase)) if text
    )


def lag_bound_s(played: Played) -> float:
    """What the P99 of lag may be."""
    ttft = [sample.ttft_s for sample in played.samples if sample.is_answered and sample.first_at]
    return max(LEAST_LAG_BOUND_S, LAG_SHARE_OF_TTFT * median(ttft)) if ttft else LEAST_LAG_BOUND_S


def _lag(played: Played, phase: Phase) -> str:
    """Users who wait have no schedule; that their answers are seen late tells how the generator woke."""
    is_open = phase.users is None
    lags = sorted(played.lags_s if is_open else played.wake_lags_s)
    bound = lag_bound_s(played)
    late = sum(lag > bound for lag in lags)
    # One of a few is an accident; for 100 and more this is the P99.
    if late <= max(1, LATE_SHARE * len(lags)):
        return ""
    p99, most = seconds_text(quantile(lags, 0.99)), seconds_text(bound)
    what = "sent" if is_open else "was woken"
    return f"the generator {what} late (lag P99 {p99}, at most {most}): use more processes or a freer machine"


def _busy(played: Played) -> str:
    if played.busiest_share <= MOST_BUSY_SHARE:
        return ""
    return f"a process of the generator was busy for {share_text(played.busiest_share)} of the time: use more processes"


def _unsent(played: Played) -> str:
    """What this machine's limits kept from being sent; what the end of a run left is no fault of the generator."""
    codes = {
        sample.code
        for sample in played.samples
        if sample.outcome is ClientOutcome.UNSENT and sample.code != "run_ended"
    }
    if not codes:
        return ""
    why = ", ".join(sorted(codes))
    return f"requests could not be sent for want of sockets here ({why}): raise ulimit -n or send less"


def _late_end(played: Played, phase: Phase) -> str:
    """Asks that were sent after the phase was over were due in it: it was played at a lower rate."""
    if phase.users is not None or not played.sending_s:
        return ""
    sent = [sample.sent_at for sample in played.samples if sample.sent_at]
    ends_at = played.began_s + played.sending_s + lag_bound_s(played)
    in_time = sum(sent_at <= ends_at for sent_at in sent)
    if in_time >= LEAST_SENT_SHARE * len(sent):
        return ""
    return f"the generator sent {share_text(in_time / len(sent))} of what was due in time: use more processes"
