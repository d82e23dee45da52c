"""Exceptions that leave Tidegate. A refusal is a value inside (``policy.decisions.Refuse``), never one of these."""

from __future__ import annotations


class TidegateError(Exception):
    """Every exception of this package; its text tells the reader what to do."""


class ConfigError(TidegateError):
    """A configuration that cannot run.

    ``problems`` holds one finished line per mistake (``file:line:col: message``), all of
    them at once, so that a user mends the file in one pass.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class EngineError(TidegateError):
    """An engine could not be started, reached or understood."""


class ProtocolError(TidegateError):
    """A peer sent bytes that are not the HTTP/1.1 or SSE they should be.

    ``status`` is the HTTP status that answers a client's mistake.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
