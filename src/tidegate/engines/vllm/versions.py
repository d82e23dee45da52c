"""Which vLLM the scheduler was tested with: the interface that it uses is not public, and changes between versions."""

from __future__ import annotations

from tidegate.engines.vllm.reservation import UnknownVersion

TESTED = ("0.32.0",)
"""Every test of ``tests/live/test_vllm_scheduler.py`` passes on these."""


def is_tested(version: str) -> bool:
    """A build of a tested release counts as that release (``0.32.0+cpu``)."""
    return version.partition("+")[0] in TESTED


def why_not(version: str, unknown_version: UnknownVersion) -> str | None:
    """What to tell the operator about an untested version; None for a tested one."""
    if is_tested(version):
        return None
    known = ", ".join(TESTED)
    if unknown_version == "refuse":
        return (
            f"Tidegate's scheduler was not tested with vLLM {version} (only with {known}) and its guarantee would be a "
            "guess. Install a tested version, leave --scheduler-cls away, or set unknown_version to native to let vLLM "
            "schedule as it does and leave memory to the gateway's ledger"
        )
    return (
        f"vLLM {version} IS NOT TESTED (only {known}): NOTHING IS RESERVED IN THIS ENGINE. vLLM schedules as it does, "
        "may preempt, and only the gateway's ledger stands between its clients and a full KV pool"
    )
