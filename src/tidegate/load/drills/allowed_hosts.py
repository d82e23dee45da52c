"""Which hosts a drill may touch."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit


def host_of(url: str) -> str:
    """In lower case; "" for what is no http URL with a host."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").lower() if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def why_not_allowed(url: str, allowed: Iterable[str]) -> str:
    """Why this URL may not be touched; "": it may. There are no wildcards: what may be broken is written out."""
    host = host_of(url)
    if not host:
        return f"must be an http:// or https:// URL with a host, got {url!r}"
    if host in {each.lower().strip("[]") for each in allowed}:
        return ""
    return f"{host} is not on the allow-list: add it to allow, if it may be broken"
