"""Stands in for ``tidegate serve`` in a drill: ready, with a view and a data process that can be killed.

``--config`` names the file that says which replicas there are; its key ``scripted`` may say ``never_ready``, or
``kept_out``: breakers are open until somebody has asked for an answer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ANSWER = {
    "choices": [{"index": 0, "message": {"content": "Hello there."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}},
}


class Answers(BaseHTTPRequestHandler):
    config: Path
    was_asked = threading.Event()

    def do_GET(self) -> None:
        known: dict[str, Any] = json.loads(self.config.read_text())
        if self.path == "/ready":
            self.answer(503 if known.get("scripted") == "never_ready" else 200, {"status": "ready"})
        elif self.path == "/admin/view":
            (upstream,) = known["upstreams"].values()
            is_out = known.get("scripted") == "kept_out" and not self.was_asked.is_set()
            up = {"ready": True, "breaker": "open" if is_out else "closed", "in_flight": 0, "limit": 4.0}
            self.answer(200, {"open_requests": 0, "replicas": {each["name"]: up for each in upstream["replicas"]}})
        elif self.path.startswith("/admin/requests"):
            self.answer(200, {"requests": [{"request_id": "made-1", "outcome": "ok", "status": 200}]})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("completions"):
            self.was_asked.set()
        refused = self.path == "/admin/reload" and "refuse" in self.config.read_text()
        self.answer(422 if refused else 200, ANSWER if self.path.endswith("completions") else {"applied": not refused})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, *_: object) -> None:
        """Not a word per request."""


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--config", "--port", "--admin-port"):
        parser.add_argument(name)
    given = parser.parse_args()
    Answers.config = Path(given.config)
    sys.stdout.write("started\n")
    sys.stdout.flush()
    # Its command names the module that the drill looks for; it ends with this process, as the real one does.
    data = (sys.executable, "-c", "import sys; sys.stdin.read()", "tidegate.gateway.process")
    for port in (given.admin_port, given.port):
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        with subprocess.Popen(data, stdin=subprocess.PIPE) as process:
            process.wait()


if __name__ == "__main__":
    main()
