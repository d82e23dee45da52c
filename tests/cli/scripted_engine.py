"""Stands in for the embedded engine under a supervisor: listens, tells its pool, writes no words."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOT = {"n_ctx": 2048, "is_processing": False}


class Answers(BaseHTTPRequestHandler):
    """What llama.cpp's /health, /slots and /props look like."""

    def do_GET(self) -> None:
        found = {"/health": {"status": "ok"}, "/slots": [SLOT] * 4}.get(self.path)
        body = json.dumps(found).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        """Not a word per request."""


def say(message: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    options = json.loads(sys.stdin.buffer.readline())
    if options["alias"] == "broken":
        say({"problem": "the model is broken"})
        sys.exit(78)
    server = ThreadingHTTPServer(("127.0.0.1", options["port"]), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say({"listening": f"http://127.0.0.1:{options['port']}"})
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
