"""Which paths exist, and what each of them takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One kind of call that goes to an engine."""

    path: str
    takes_json: bool = True
    """The body must be a JSON object."""
    generates: bool = True
    """Produces tokens; False for embeddings."""
    is_known: bool = True
    """False for what merely passes through, as class ``other``."""


CHAT = Route("/v1/chat/completions")
COMPLETIONS = Route("/v1/completions")
EMBEDDINGS = Route("/v1/embeddings", generates=False)

ROUTES: dict[bytes, Route] = {route.path.encode(): route for route in (CHAT, COMPLETIONS, EMBEDDINGS)}

PASSED_METHODS = frozenset({b"GET", b"POST", b"PUT", b"PATCH", b"DELETE"})
"""For other /v1 paths. HEAD is missing: llhttp can't be told that its answer has no body."""

LONGEST_PATH = 128
"""Of a passed-through path in records; a client may send any."""


def passed_through(path: bytes) -> Route:
    """The route of a /v1 path that we don't know."""
    return Route(path[:LONGEST_PATH].decode("latin-1"), takes_json=False, generates=False, is_known=False)
