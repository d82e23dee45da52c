"""Callbacks on their way out of the parent process: signed, tried again, and given up in the open.

Headers and signature are those of Standard Webhooks, which OpenAI's own client libraries verify.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tidegate.errors import TidegateError
from tidegate.gateway.messages import CallBack
from tidegate.wire.fetch import Reply, fetch
from tidegate.wire.tls import Tls

BACKOFFS_S = (0.0, 2.0, 8.0)
"""Before each try."""
WITHIN_S = 10.0
"""One try, from the name look-up to the last byte."""
MOST_PENDING = 1000
SECRET_PREFIX = "whsec_"

Post = Callable[..., Coroutine[Any, Any, Reply]]
Say = Callable[[str, str], None]


class CallbackSender:
    """``say`` writes a log line. Redirects are not followed: they would lead past the list of allowed origins."""

    def __init__(self, say: Say, post: Post = fetch) -> None:
        self.secret: str | None = None
        """Signs; None: callbacks go unsigned."""
        self._say = say
        self._post = post
        self._tls: Tls | None = None
        """Made for the first one: loading the system's authorities takes a while."""
        self._pending: set[asyncio.Task[None]] = set()

    def send(self, callback: CallBack) -> None:
        """Send it in a task of its own."""
        if len(self._pending) >= MOST_PENDING:
            self._say("error", f"callback of {callback.message_id} is dropped: {MOST_PENDING} others are under way")
            return
        task = asyncio.get_running_loop().create_task(self._send(callback))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def stop(self, within_s: float) -> None:
        """Let those that are under way finish; what is left after that is said and dropped."""
        if not self._pending:
            return
        _, late = await asyncio.wait(tuple(self._pending), timeout=within_s)
        for task in late:
            task.cancel()
        if late:
            self._say("error", f"{len(late)} callbacks are dropped, because the service ends")

    async def _send(self, callback: CallBack) -> None:
        problem = ""
        for backoff_s in BACKOFFS_S:
            await asyncio.sleep(backoff_s)
            problem = await self._try(callback)
            if not problem:
                return
        self._say("error", f"callback of {callback.message_id} failed {len(BACKOFFS_S)} times: {problem}")

    async def _try(self, callback: CallBack) -> str:
        """What went wrong; "" when it arrived."""
        self._tls = self._tls or Tls()
        try:
            headers = self._headers(callback, int(time.time()))
            reply = await self._post(
                callback.url,
                method="POST",
                headers=headers,
                body=callback.body,
                timeout_s=WITHIN_S,
                tls=self._tls,
                limit_bytes=65536,
            )
        except (OSError, TimeoutError, ValueError, TidegateError) as error:
            return f"{type(error).__name__}: {error}"
        return "" if 200 <= reply.status < 300 else f"status {reply.status}"

    def _headers(self, callback: CallBack, at: int) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "user-agent": "tidegate",
            "webhook-id": callback.message_id,
            "webhook-timestamp": str(at),
        }
        if self.secret is not None:
            headers["webhook-signature"] = signature(self.secret, callback.message_id, at, callback.body)
        return headers


def signature(secret: str, message_id: str, at: int, body: bytes) -> str:
    """``v1,`` and base64 of HMAC-SHA256 over ``id.timestamp.body``; a secret that begins with ``whsec_`` is base64.

    Raises ``ValueError`` when such a secret is none.
    """
    key = (
        base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        if secret.startswith(SECRET_PREFIX)
        else secret.encode()
    )
    mac = hmac.new(key, b"%b.%d.%b" % (message_id.encode(), at, body), hashlib.sha256)
    return "v1," + base64.b64encode(mac.digest()).decode()
