"""The child process of the embedded engine up to the point where it would load a model; the rest is in tests/live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.engines.launch import CANNOT_RUN
from tidegate.engines.llamacpp.embedded import BATCH_TOKENS
from tidegate.engines.llamacpp.options import Options
from tidegate.policy.reading import Capacity

MODEL = "none.gguf"


def run_with_library(folder: Path, source: str, options: Options | None = None) -> tuple[int, dict[str, str]]:
    """Run the child with ``source`` in the place of xllamacpp until it has said something; status and what it said."""
    (folder / "xllamacpp.py").write_text(source)
    launch = (options or Options(model=MODEL, port=1)).launch("engine")
    with subprocess.Popen(
        launch.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **launch.env, "PYTHONPATH": str(folder)},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(launch.first_line)
        child.stdin.flush()
        said = json.loads(child.stdout.readline())
        if "listening" in said:
            child.stdin.close()
        return child.wait(timeout=30), said


def test_a_missing_libgomp_says_what_to_install(tmp_path: Path) -> None:
    missing = "libgomp.so.1: cannot open shared object file: No such file or directory"
    status, said = run_with_library(tmp_path, f"raise ImportError({missing!r})")
    assert status == CANNOT_RUN
    assert said["problem"].startswith(missing)
    assert "apt-get install libgomp1" in said["problem"]


def test_another_library_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    status, said = run_with_library(tmp_path, "raise ImportError('GLIBC_2.99 not found')")
    assert (status, said) == (CANNOT_RUN, {"problem": "xllamacpp cannot be loaded: GLIBC_2.99 not found"})


def test_a_missing_xllamacpp_says_how_to_get_it(tmp_path: Path) -> None:
    status, said = run_with_library(tmp_path, "raise ModuleNotFoundError(\"No module named 'xllamacpp'\")")
    assert status == CANNOT_RUN
    assert "`make run` installs it" in said["problem"]


SERVER = """
import json, os, types
class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = (types.SimpleNamespace() for _ in range(3))
class Server:
    def __init__(self, parameters):
        told = {name: sorted(value) if isinstance(value, set) else value for name, value in vars(parameters).items()
                if not isinstance(value, types.SimpleNamespace)}
        told["threads"] = [parameters.cpuparams.n_threads, parameters.cpuparams_batch.n_threads]
        told["path"] = parameters.model.path
        told["spinning"] = [os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"]]
        self.listening_address = json.dumps(told)
"""


def started(folder: Path, options: Options) -> dict[str, object]:
    status, said = run_with_library(folder, SERVER, options)
    assert status == 0
    told: dict[str, object] = json.loads(said["listening"])
    return told


def test_the_engine_gets_the_options_and_its_quirks_are_tamed(tmp_path: Path) -> None:
    told = started(
        tmp_path, Options(model="m.gguf", port=4242, alias="x", sequences=3, context_tokens=512, api_key="k")
    )
    assert told["path"] == "m.gguf"
    assert (told["hostnames"], told["port"], told["api_keys"]) == (["127.0.0.1"], 4242, ["k"])
    assert told["model_alias"] == ["x"]
    assert (told["n_parallel"], told["n_ctx"], told["kv_unified"]) == (3, 1536, False)
    assert told["n_batch"] == told["n_ubatch"] == BATCH_TOKENS
    assert told["threads"] == [max(1, (os.cpu_count() or 1) - 1)] * 2
    assert told["spinning"] == ["passive", "0"]
    assert (told["cache_prompt"], told["cache_ram_mib"]) == (True, 256)
    assert not told["ui"]
    assert not told["ctx_shift"]
    assert told["endpoint_slots"]
    assert told["endpoint_metrics"]


def test_without_prefix_caching_no_host_memory_is_kept_for_it(tmp_path: Path) -> None:
    told = started(tmp_path, Options(model="m.gguf", port=1, prefix_caching=False, threads=5))
    assert (told["cache_prompt"], told["cache_ram_mib"]) == (False, 0)
    assert told["threads"] == [5, 5]


def test_a_server_that_does_not_start_may_be_tried_again(tmp_path: Path) -> None:
    source = "CommonParams = __import__('unittest.mock').mock.MagicMock\ndef Server(p): raise RuntimeError('no bind')"
    status, said = run_with_library(tmp_path, source, Options(model="m.gguf", port=77))
    assert status == 1
    assert said["problem"] == "llama.cpp does not start with m.gguf on port 77: no bind"


def test_options_know_what_the_engine_will_hold_and_where() -> None:
    options = Options(model=MODEL, port=5000, sequences=2, context_tokens=100)
    assert options.capacity == Capacity(kv_tokens=200, slot_tokens=100, sequences=2, context_tokens=100)
    assert options.address.url == "http://127.0.0.1:5000"
    assert options.address.api_key == options.api_key


def test_the_key_is_new_for_each_options_and_in_no_command_line() -> None:
    first, second = Options(model=MODEL, port=1), Options(model=MODEL, port=1)
    assert first.api_key != second.api_key
    launch = first.launch("engine")
    assert first.api_key.encode() in launch.first_line
    assert not any(first.api_key in part for part in (*launch.command, *launch.env.values()))


@pytest.mark.skipif(sys.platform != "linux", reason="the pinned wheel is for Linux")
def test_the_real_library_has_every_parameter_that_is_set() -> None:
    source = """
import xllamacpp
from tidegate.engines.llamacpp.embedded import _parameters
from tidegate.engines.llamacpp.options import Options
parameters = _parameters(xllamacpp.CommonParams(), Options(model="m.gguf", port=4242, alias="x"))
assert parameters.model_alias == {"x"}, parameters.model_alias
assert (parameters.n_ctx, parameters.n_batch, parameters.n_ubatch) == (8192, 64, 64)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
