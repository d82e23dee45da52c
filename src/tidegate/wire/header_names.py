"""Every header name that Tidegate reads or writes, lower-case, in one place."""

from __future__ import annotations

AUTHORIZATION = b"authorization"
CONNECTION = b"connection"
CONTENT_ENCODING = b"content-encoding"
CONTENT_LENGTH = b"content-length"
CONTENT_TYPE = b"content-type"
EXPECT = b"expect"
HOST = b"host"
RETRY_AFTER = b"retry-after"
TRANSFER_ENCODING = b"transfer-encoding"

X_FORWARDED_FOR = b"x-forwarded-for"
X_REQUEST_ID = b"x-request-id"
"""Also ``Request.key``: a client that comes back under the same id keeps its place."""

# In: what a client may tell us about one request.
DEADLINE_MS = b"x-tidegate-deadline-ms"
SERVICE_CLASS = b"x-tidegate-class"
SESSION = b"x-tidegate-session"
STAINLESS_READ_TIMEOUT = b"x-stainless-read-timeout"
"""Seconds, sent by the stock OpenAI clients: bounds the first byte and each gap, not the total."""
GRPC_TIMEOUT = b"grpc-timeout"
IDEMPOTENCY_KEY = b"idempotency-key"
"""draft-ietf-httpapi-idempotency-key-header: calls under one key are one request."""
PREFER = b"prefer"
"""RFC 7240: ``respond-async`` asks for a job, ``wait=3`` to wait so many seconds for the answer first."""
ASYNC = b"x-tidegate-async"
"""``true``: as ``Prefer: respond-async``, for clients that cannot send that."""
CALLBACK = b"x-tidegate-callback"
"""URL that is told when the job has ended."""
ASYNC_IN = frozenset({PREFER, ASYNC, CALLBACK})

# Out: what we tell about one answer.
REASON = b"x-tidegate-reason"
OUTPUT = b"x-tidegate-output"
"""What is wrong with the answer that is given all the same; at the end of a stream as a comment."""
DEGRADED = b"x-tidegate-degraded"
QUEUE_MS = b"x-tidegate-queue-ms"
REPLICA = b"x-tidegate-replica"
ATTEMPTS = b"x-tidegate-attempts"
"""How many attempts were made here, where it was more than one."""
AGE = b"age"
RETRY_AFTER_MS = b"retry-after-ms"
"""The OpenAI clients read it before ``retry-after``."""
SHOULD_RETRY = b"x-should-retry"
"""``true`` or ``false``; the OpenAI clients let it win over the status code."""
LOCATION = b"location"
PREFERENCE_APPLIED = b"preference-applied"
REPLAYED = b"idempotency-replayed"
"""``true`` on the answer to a call that repeats a finished one."""
ORIGINAL_REQUEST_ID = b"x-tidegate-original-request-id"
"""On the answer to a call that joined or repeats another: that one's ``x-request-id``."""

RATE_REQUESTS = (
    b"x-ratelimit-limit-requests",
    b"x-ratelimit-remaining-requests",
    b"x-ratelimit-reset-requests",
)
"""Most in a minute, what is left of it, and when all of it is back, as OpenAI's API has them."""
RATE_TOKENS = (
    b"x-ratelimit-limit-tokens",
    b"x-ratelimit-remaining-tokens",
    b"x-ratelimit-reset-tokens",
)

HOP_BY_HOP = frozenset(
    {
        CONNECTION,
        TRANSFER_ENCODING,
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
"""RFC 9110 section 7.6.1: they belong to one connection and are never passed on."""

OURS_IN = frozenset({DEADLINE_MS, SERVICE_CLASS, SESSION, STAINLESS_READ_TIMEOUT, GRPC_TIMEOUT})
"""Read here and not passed on as they came: of a deadline, what is left of it goes out (``gateway.hints``)."""

NOT_FORWARDED = (
    HOP_BY_HOP
    | OURS_IN
    | ASYNC_IN
    | {AUTHORIZATION, CONTENT_LENGTH, EXPECT, HOST, IDEMPOTENCY_KEY, X_REQUEST_ID, b"accept-encoding", b"cookie"}
)
"""Not copied from a client's request to an engine. ``accept-encoding`` goes because a compressed
stream hides its events and usage; credentials go unless the endpoint passes them through; two
tenants may choose one idempotency key, and an upstream could not tell them apart."""

NOT_RETURNED = HOP_BY_HOP | {CONTENT_LENGTH, X_REQUEST_ID, b"server", *RATE_REQUESTS, *RATE_TOKENS}
"""Not copied from an engine's answer to a client."""
