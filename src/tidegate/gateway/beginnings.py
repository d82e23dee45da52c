"""Digests of a prompt's beginnings, by which replicas that have read them before are found again.

Two prompts that begin alike have equal digests up to where they part. Digests are taken at 512 bytes and at every
doubling: a conversation's next turn finds at least half of what the turn before had, for a handful of CRCs. Up to 4 KiB
every byte counts, beyond that only the last 512 before each mark, so that a long prompt costs little more than a
short one. No session is needed; one that the client names stands for all of its prompt.
"""

from __future__ import annotations

from zlib import crc32

from tidegate.wire.body import Body

FIRST_BYTES = 512
"""Some 128 tokens; to have read less is not worth going anywhere."""
WHOLE_BYTES = 4096
SAMPLE_BYTES = 512


def beginnings(body: Body, session: str | None) -> tuple[tuple[int, float], ...]:
    """(digest, share of the prompt), the longest first; as ``Request.prefixes`` wants them."""
    fields = body.fields
    text = memoryview(fields.messages) or memoryview(fields.prompt)
    total, end, digest = len(text), FIRST_BYTES, 0
    found: list[tuple[int, float]] = []
    while end <= total:
        begin = 0 if end == FIRST_BYTES else end // 2 if end <= WHOLE_BYTES else end - SAMPLE_BYTES
        digest = crc32(text[begin:end], digest)
        found.append((digest, end / total))
        end *= 2
    if session:
        found.append((crc32(session.encode()), 1.0))
    found.reverse()
    return tuple(found)
