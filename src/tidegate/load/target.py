"""A service under load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Several of them are played one after the other in short turns, and compared."""

    name: str
    url: str
    """Up to and with ``/v1``."""
    model: str
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request, such as the API key."""
    admin_url: str | None = None
    """Tidegate's admin API, where the target is one: its metrics and view go into the report."""
    ca_file: str | None = None
    """PEM file of authorities for https; None: the system's."""
