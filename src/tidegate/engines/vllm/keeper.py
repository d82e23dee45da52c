"""A vLLM server under the protocol of ``engines.launch``, which vLLM itself does not speak.

Run as ``python -m tidegate.engines.vllm.keeper`` by a supervisor. vLLM says in no line that it listens, does
not notice that its parent is gone, leaves worker processes behind when it is killed, and ends with status 0
when its engine has died. A process of ours between the two makes all of that one child that is ready, or
has ended with a reason. Both are in one process group, which goes as a whole.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from types import FrameType
from urllib.parse import urlsplit

import msgspec

from tidegate.engines.launch import CANNOT_RUN
from tidegate.engines.vllm.ending import cause_in, in_words, is_mistake
from tidegate.engines.vllm.order import Order

LOOK_EVERY_S = 0.2
ANSWER_WITHIN_S = 2.0
KEPT_LINES = 400
"""A traceback of each of vLLM's processes fits in."""
LAST_LINES_WITHIN_S = 1.0
"""A worker that outlives the server holds its output open."""


class Keeper:
    """One life of vLLM. Everything but reading its output happens in the main thread."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._was_told_to_end = False
        self._was_ready = False

    def live(self) -> int:
        """Start it, say when it serves, wait for its end; our exit status."""
        signal.signal(signal.SIGTERM, self._end)
        try:
            process = self._process = self._started()
        except OSError as error:
            say({"problem": f"{self._order.command[0]} cannot be started: {error}"})
            return CANNOT_RUN
        reading = threading.Thread(target=self._pass_on, args=(process,), daemon=True)
        reading.start()
        if self._was_told_to_end:
            process.terminate()
        while process.poll() is None and not self._was_ready:
            self._look()
        status = process.wait()
        reading.join(LAST_LINES_WITHIN_S)
        return self._ended(status)

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the command that the operator configured
            self._order.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self._order.env},
        )

    def _look(self) -> None:
        if is_healthy(self._order.url):
            self._was_ready = True
            say({"listening": self._order.url})
        else:
            time.sleep(LOOK_EVERY_S)

    def _ended(self, status: int) -> int:
        if self._was_told_to_end:
            return 0
        cause = cause_in([*self._lines])
        say({"problem": in_words(status, cause, was_ready=self._was_ready)})
        return CANNOT_RUN if not self._was_ready and is_mistake(status, cause) else 1

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        # vLLM lets running requests finish for --shutdown-timeout; the supervisor's patience is longer.
        self._was_told_to_end = True
        if self._process is not None:
            self._process.terminate()

    def _pass_on(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for above
        for line in process.stdout:
            self._lines.append(line.decode("utf-8", "replace").rstrip())
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


def is_healthy(url: str) -> bool:
    """Whether /health answers 200, which vLLM does only once it serves."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_WITHIN_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def end_with_parent() -> None:
    """When standard input ends the supervisor is gone, and nobody's requests are served any more."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # The whole group: vLLM's engine and workers would hold GPU memory on, and some do not look for their parent.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def say(message: dict[str, str]) -> None:
    """A line of the protocol."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=end_with_parent, daemon=True).start()
    return Keeper(order).live()


if __name__ == "__main__":
    sys.exit(main())
