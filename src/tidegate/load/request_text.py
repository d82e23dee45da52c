"""The bytes of a request, made before it is due."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from tidegate.errors import ConfigError
from tidegate.load.ask import Ask
from tidegate.load.target import Target


class RequestText:
    """Of one target."""

    __slots__ = ("_headers", "_heads", "_model", "_prefix", "host", "is_tls", "netloc", "port")

    def __init__(self, target: Target) -> None:
        """Raises ``ConfigError``: the URL is no http or https URL with a host."""
        parts = urlsplit(target.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError([f"target {target.name}: {target.url!r} is no URL; write http://HOST:PORT/v1"])
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.is_tls else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.rstrip("/")
        self._headers = target.headers
        self._model = b'{"model":' + msgspec.json.encode(target.model)
        self._heads: dict[str, bytes] = {}
        """By path, of asks without headers of their own."""

    def of(self, ask: Ask) -> bytes:
        """Head and body. A header of the ask stands in place of the target's header of that name."""
        body = ask.body
        head = self._head(ask)
        return b"%b%d\r\n\r\n%b%b" % (head, len(self._model) + len(body), self._model, body)

    def _head(self, ask: Ask) -> bytes:
        if ask.headers:
            return self._made(ask.path, ask.headers)
        head = self._heads.get(ask.path)
        if head is None:
            head = self._heads[ask.path] = self._made(ask.path, ())
        return head

    def _made(self, path: str, headers: tuple[tuple[str, str], ...]) -> bytes:
        given = {name.lower(): value for name, value in (*self._headers, *headers)}
        lines = [f"POST {self._prefix}{path} HTTP/1.1", f"host: {self.netloc}"]
        lines += [f"{name}: {value}" for name, value in ({"content-type": "application/json"} | given).items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ConfigError([f"a line break in the path or a header of {path!r}"])
        return "\r\n".join([*lines, "content-length: "]).encode("latin-1")
