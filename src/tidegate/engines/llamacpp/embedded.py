"""The embedded engine: llama.cpp and its own HTTP server, in a child process of ours.

Run as ``python -m tidegate.engines.llamacpp.embedded`` by a supervisor; the protocol is that of
``engines.launch``. In a process of its own because an abort in native code must not take the gateway
along, its environment has to be set before the library is loaded, and memory comes back only with it.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

import msgspec

from tidegate.engines.launch import CANNOT_RUN
from tidegate.engines.llamacpp.options import Options
from tidegate.errors import EngineError

BATCH_TOKENS = 64
"""Prompt tokens of one step. llama.cpp looks at cancellations and lets the other sequences go on only
between steps, so this bounds both. Measured with SmolLM2 on one thread, against its default of 2048:
the longest gap of a stream beside a 1 300-token prefill fell from 22.9 s to 1.7 s, a disconnect in a
prefill frees the slot within 2 s instead of at its end, and the prefill itself cost the same CPU time."""

ERRORS = 1
"""llama.cpp's verbosity. Its default of 3 writes several lines per request, and 2 still one for a repeated prompt."""

XLLAMACPP = "xllamacpp==2026.10.11549"


def main() -> int:
    """Serve until standard input ends."""
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=Options)
    lifeline = threading.Thread(target=_end_with_parent, daemon=True)
    lifeline.start()
    try:
        server = _start(_library(), options)
    except EngineError as error:
        _say({"problem": str(error)})
        return CANNOT_RUN
    except RuntimeError as error:
        _say({"problem": f"llama.cpp does not start with {options.model} on port {options.port}: {error}"})
        return 1
    _say({"listening": server.listening_address})
    lifeline.join()
    return 0


def _end_with_parent() -> None:
    # From the descriptor, for a lock on sys.stdin that is held here would abort a regular exit.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # A regular exit would wait for requests that still run in native threads.
    os._exit(0)


def _say(message: dict[str, str]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _library() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{error}. The embedded engine needs xllamacpp: `make run` installs it; "
            f"by hand: pip install '{XLLAMACPP}' (or tidegate[local])"
        ) from error
    except ImportError as error:
        raise EngineError(_missing_library(str(error))) from error


def _missing_library(text: str) -> str:
    if "libgomp" not in text:
        return f"xllamacpp cannot be loaded: {text}"
    return (
        f"{text}. llama.cpp needs the system's OpenMP library: apt-get install libgomp1 (Debian, Ubuntu), "
        "dnf install libgomp (Fedora, RHEL), apk add libgomp (Alpine)"
    )


def _start(xllamacpp: Any, options: Options) -> Any:
    """Load the model and listen; some seconds. Raises RuntimeError."""
    return xllamacpp.Server(_parameters(xllamacpp.CommonParams(), options))


def _parameters(parameters: Any, options: Options) -> Any:
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options.port
    parameters.api_keys = [options.api_key]
    parameters.ui = False
    parameters.endpoint_slots = True
    parameters.endpoint_metrics = True
    parameters.n_parallel = options.sequences
    parameters.n_ctx = options.sequences * options.context_tokens
    parameters.kv_unified = False
    # A sequence that outgrows its slot ends with finish_reason "length"; shifting would drop its beginning.
    parameters.ctx_shift = False
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    parameters.cache_prompt = options.prefix_caching
    parameters.cache_ram_mib = options.host_cache_mib if options.prefix_caching else 0
    parameters.verbosity = ERRORS
    return parameters


if __name__ == "__main__":
    sys.exit(main())
