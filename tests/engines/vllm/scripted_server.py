"""Stands in for vLLM: has its flags, its /health, its metrics, its children and its odd ways to end.

Run with ``-m vllm.entrypoints.openai.api_server`` by ``scripted_python``; the model's name says how it behaves.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = """vllm:num_requests_running{{engine="0"}} 0
vllm:num_requests_waiting{{engine="0"}} 0
vllm:kv_cache_usage_perc{{engine="0"}} 0
vllm:num_preemptions_total{{engine="0"}} 3
vllm:prefix_cache_queries_total{{engine="0"}} 200
vllm:prefix_cache_hits_total{{engine="0"}} 50
vllm:engine_sleep_state{{engine="0",sleep_state="awake"}} {awake}
vllm:cache_config_info{{engine="0",num_gpu_blocks="{blocks}",block_size="{size}"}} 1
"""


BLOCKS, BLOCK_TOKENS = 101, 16
"""What it has where the flags do not say."""


class Answers(BaseHTTPRequestHandler):
    """The few pages that are asked for."""

    flags: argparse.Namespace
    is_asleep = False

    def do_GET(self) -> None:
        models = {"data": [{"id": self.flags.served_model_name, "max_model_len": self.flags.max_model_len}]}
        awake, blocks = int(not Answers.is_asleep), self.flags.num_gpu_blocks_override or BLOCKS
        page = PAGE.format(awake=awake, blocks=blocks, size=self.flags.block_size or BLOCK_TOKENS)
        pages = {"/health": "", "/v1/models": json.dumps(models), "/metrics": page}
        self._answer(200 if self.path in pages else 404, pages.get(self.path, ""))

    def do_POST(self) -> None:
        Answers.is_asleep = self.path.startswith("/sleep")
        self._answer(200, "")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        """Not a word per request."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


WORDS = (
    "model", "served-model-name", "dtype", "host", "tensor-parallel-size", "scheduling-policy", "scheduler-cls",
    "additional-config", "gpu-memory-utilization",
)  # fmt: skip
NUMBERS = (
    "port", "shutdown-timeout", "max-model-len", "max-num-seqs", "num-gpu-blocks-override", "block-size",
    "kv-cache-memory-bytes", "max-num-queued-reqs",
)  # fmt: skip
SWITCHES = ("disable-uvicorn-access-log", "enable-prefix-caching", "enable-sleep-mode", "enforce-eager")


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="api_server.py", allow_abbrev=False)
    for name in WORDS:
        parser.add_argument(f"--{name}")
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=int)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def main() -> None:
    given = flags()
    behaviour = Path(given.model).name
    say(f"APIServer starts {os.environ['VLLM_API_KEY'][:4]}")
    if behaviour == "refused":
        say("ValidationError: 1 validation error for ModelConfig\n  Value error, the model is not for this")
        sys.exit(1)
    if behaviour == "unlucky":
        say("(EngineCore pid=7) ERROR ValueError: no memory just now")
        say("RuntimeError: Engine core initialization failed. See root cause above.")
        sys.exit(1)
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    say(f"worker {worker.pid}")
    Answers.flags = given
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if behaviour == "loses-its-engine":
        # As the real one: it ends by itself, with a status that says all is well, and a worker lives on.
        time.sleep(0.5)
        sys.exit(0)
    signal.pause()


if __name__ == "__main__":
    main()
