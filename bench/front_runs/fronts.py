"""What may stand before real engines: nothing, Tidegate, and others, each as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate.engines.loopback import free_port

READY_WITHIN_S = 60.0
SEQUENCES = 4
"""Of one engine: what a front with a limit per server is told, as whoever runs it would."""
QUEUE = 32
QUEUE_S = 10
SBIN = "/usr/sbin"
"""Where Debian has haproxy; not in everybody's PATH."""

HAPROXY = """
global
  nbthread 1
defaults
  mode http
  timeout connect 2s
  timeout client 600s
  timeout server 600s
  timeout queue {queue_s}s
  option http-no-delay
  option abortonclose
frontend front
  bind 127.0.0.1:{port}
{deny}  default_backend engines
backend engines
  balance leastconn
  http-reuse always
  option redispatch
{servers}
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where engines are, and a folder for what a front writes."""

    folder: Path
    urls: tuple[str, ...]
    """Without ``/v1``."""
    api_key: str
    """The engines', and so the clients'."""
    model: str


Urls = tuple[str, ...]
"""What clients are told; of several they take turns."""


@dataclass(frozen=True, slots=True)
class Front:
    name: str
    about: str
    start: Callable[[Place], AbstractContextManager[Urls]]
    why_not: Callable[[], str] = lambda: ""
    """Empty: it is installed."""


@contextmanager
def alone(place: Place) -> Iterator[Urls]:
    yield place.urls


@contextmanager
def _process(command: Sequence[str], place: Place, name: str, url: str, ready: str = "/health") -> Iterator[Urls]:
    """Started, ready, and gone at the end with all its processes. Raises RuntimeError with its last words."""
    log = place.folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=place.folder,
            start_new_session=True,
            env={**os.environ, "ENGINE_KEY": place.api_key},
        )
    try:
        _wait(process, f"{url}{ready}", place.api_key, log)
        yield (url,)
    finally:
        for which in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, which)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    continue


def _wait(process: subprocess.Popen[bytes], url: str, api_key: str, log: Path) -> None:
    began = time.monotonic()
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {api_key}"})
    while time.monotonic() - began < READY_WITHIN_S:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"{process.args!r} is not ready:\n{log.read_text(errors='replace')[-3000:]}")


def _tidegate(name: str, sections: dict[str, object]) -> Callable[[Place], AbstractContextManager[Urls]]:
    @contextmanager
    def start(place: Place) -> Iterator[Urls]:
        replicas = [{"url": url, "api_key_env": "ENGINE_KEY"} for url in place.urls]
        config = place.folder / f"{name}.yaml"
        config.write_text(json.dumps({"upstreams": {place.model: {"replicas": replicas}}, **sections}))
        port, admin_port = free_port(), free_port()
        command = [sys.executable, "-c", "from tidegate.cli.main import app; app()", "serve", "--config", str(config)]
        command += ["--port", str(port), "--admin-port", str(admin_port)]
        with _process(command, place, name, f"http://127.0.0.1:{port}", "/ready") as urls:
            yield urls

    return start


def _haproxy(name: str, *, has_queue: bool) -> Callable[[Place], AbstractContextManager[Urls]]:
    @contextmanager
    def start(place: Place) -> Iterator[Urls]:
        port = free_port()
        limit = f" maxconn {SEQUENCES}" if has_queue else ""
        servers = "\n".join(
            f"  server engine{index} {url.removeprefix('http://')}{limit}" for index, url in enumerate(place.urls)
        )
        deny = f"  http-request deny deny_status 429 if {{ queue(engines) ge {QUEUE} }}\n" if has_queue else ""
        config = place.folder / f"{name}.cfg"
        config.write_text(HAPROXY.format(port=port, deny=deny, servers=servers, queue_s=QUEUE_S))
        command = [_haproxy_program() or "haproxy", "-f", str(config), "-db"]
        with _process(command, place, name, f"http://127.0.0.1:{port}") as urls:
            yield urls

    return start


def _haproxy_program() -> str | None:
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:{SBIN}")


@contextmanager
def _smg(place: Place) -> Iterator[Urls]:
    port, metrics_port = free_port(), free_port()
    command = [_smg_program() or "smg", "launch", "--host", "127.0.0.1", "--port", str(port), "--worker-urls"]
    command += [*place.urls, "--api-key", place.api_key, "--log-level", "warn"]
    command += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics_port)]
    most = SEQUENCES * len(place.urls)
    command += ["--max-concurrent-requests", str(most), "--queue-size", str(QUEUE)]
    command += ["--queue-timeout-secs", str(QUEUE_S)]
    with _process(command, place, "smg", f"http://127.0.0.1:{port}") as urls:
        yield urls


def _smg_program() -> str | None:
    named = os.environ.get("TIDEGATE_SMG")
    return shutil.which(named) if named else shutil.which("smg")


FRONTS: tuple[Front, ...] = (
    Front("alone", "no front: clients take the engines in turns", alone),
    Front("tidegate", "defaults, nothing configured but the engines", _tidegate("tidegate", {})),
    Front(
        "tidegate-slo",
        "told the objective: classes.interactive.ttft_slo_s 2",
        _tidegate("tidegate-slo", {"classes": {"interactive": {"ttft_slo_s": 2}}}),
    ),
    Front(
        "haproxy",
        "leastconn, no limits",
        _haproxy("haproxy", has_queue=False),
        lambda: "" if _haproxy_program() else "haproxy is not installed (Debian: apt-get install haproxy)",
    ),
    Front(
        "haproxy-queue",
        f"leastconn, maxconn {SEQUENCES} a server, a queue of {QUEUE} for at most {QUEUE_S} s, then 429 and 503",
        _haproxy("haproxy-queue", has_queue=True),
        lambda: "" if _haproxy_program() else "haproxy is not installed (Debian: apt-get install haproxy)",
    ),
    Front(
        "smg",
        f"Shepherd Model Gateway: as many at once as the engines have sequences, a queue of {QUEUE} for at most "
        f"{QUEUE_S} s",
        _smg,
        lambda: "" if _smg_program() else "smg is not installed (pip install smg; TIDEGATE_SMG names the program)",
    ),
)
