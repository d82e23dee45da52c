"""Calls under one key and jobs, in front of the real engine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import signal
import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import openai
import pytest

from tests.live.running import CHAT, MODEL, Answer, Exchange, Service, call, until
from tests.live.running import service as service_of

pytestmark = pytest.mark.live


def question(**fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Count from one to twenty."}]
    return {"model": MODEL, "messages": messages, "max_tokens": 40, "temperature": 1.0, **fields}


def counted(service: Service, outcome: str) -> float:
    """Requests so far that ended so."""
    lines = call(service.admin, "/metrics").body.decode().splitlines()
    named = [line for line in lines if line.startswith("tidegate_requests_total{") and f'outcome="{outcome}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in named)


def tokens_decoded(service: Service) -> float:
    """By the engine, as its own answers told."""
    lines = call(service.admin, "/metrics").body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("tidegate_output_tokens_total{"))


def test_two_clients_with_one_key_get_one_generation(service: Service) -> None:
    before, decoded = {each: counted(service, each) for each in ("ok", "joined", "replayed")}, tokens_decoded(service)
    answers: list[Answer] = []
    key = {"idempotency-key": "live-1"}

    def ask() -> None:
        answers.append(call(service.url, CHAT, question(), key))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.append(call(service.url, CHAT, question(), key))
    # At temperature 1 two generations would hardly be equal.
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len({answer.body for answer in answers}) == 1
    assert answers[2].headers["idempotency-replayed"] == "true"
    until(lambda: counted(service, "replayed") == before["replayed"] + 1, 10)
    assert counted(service, "ok") == before["ok"] + 1
    assert counted(service, "joined") == before["joined"] + 1
    assert tokens_decoded(service) - decoded == answers[0].json["usage"]["completion_tokens"]


def test_a_client_that_lost_its_connection_finds_its_stream(service: Service) -> None:
    key = {"idempotency-key": "live-2"}
    first = Exchange(service.url, question(stream=True), key)
    first.read_events(3)
    first.socket.close()
    again = Exchange(service.url, question(stream=True), key)
    text = again.read_all()
    again.socket.close()
    assert text.count(b"[DONE]") == 1
    assert first.seen.partition(b"\r\n\r\n")[2].split(b"data: ")[1] in text


def test_a_job_is_polled_to_its_end_and_another_is_cancelled(service: Service) -> None:
    accepted = call(service.url, CHAT, question(), {"prefer": "respond-async"})
    assert (accepted.status, accepted.json["object"]) == (202, "job")
    path = accepted.headers["location"]
    until(lambda: call(service.url, path).json["status"] == "done", 60, every_s=0.2)
    found = call(service.url, path).json
    assert found["response"]["body"]["choices"][0]["message"]["content"]
    result = call(service.url, f"{path}/result")
    assert (result.status, result.json) == (200, found["response"]["body"])
    other = call(service.url, CHAT, question(max_tokens=2000), {"prefer": "respond-async"}).headers["location"]
    until(lambda: call(service.url, other).json["status"] == "running", 10, every_s=0.1)
    assert delete(service, other) == 200
    until(service.is_idle, 10, every_s=0.1)
    assert call(service.url, other).json["status"] == "cancelled"


def delete(service: Service, path: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
    connection.request("DELETE", path)
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_stock_client_sends_a_key_per_call_when_told_to(service: Service) -> None:
    kept = call(service.admin, "/admin/view").json["keyed"]["kept"]
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", timeout=120) as client:
        client._idempotency_header = "Idempotency-Key"
        answers = [client.chat.completions.create(**question(max_tokens=4)) for _ in range(2)]
    assert answers[0].id != answers[1].id
    assert call(service.admin, "/admin/view").json["keyed"]["kept"] == kept + 2


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    got: ClassVar[list[tuple[Message, bytes]]] = []

    def do_POST(self) -> None:
        self.got.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_a_callback_is_signed_and_a_drain_lets_a_running_job_finish(tmp_path: Path) -> None:
    hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{hook.server_port}"
    config = {
        "upstreams": {MODEL: {"engine": "embedded"}},
        "callbacks": {"origins": [origin], "secret_env": "HOOK_SECRET"},
    }
    path = tmp_path / "tidegate.yaml"
    path.write_text(json.dumps(config))
    with service_of(tmp_path / "serve.log", "--config", str(path), env={"HOOK_SECRET": "not for anybody"}) as service:
        headers = {"prefer": "respond-async", "x-tidegate-callback": f"{origin}/done"}
        accepted = call(service.url, CHAT, question(), headers)
        assert accepted.status == 202
        service.process.send_signal(signal.SIGTERM)
        until(lambda: bool(Hook.got), 30, every_s=0.1)
    hook.shutdown()
    hook.server_close()
    [(told, body)] = Hook.got
    event = json.loads(body)
    assert (event["type"], event["data"]["id"]) == ("job.done", accepted.json["id"])
    signed = f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(b"not for anybody", signed, hashlib.sha256).digest()).decode()
    assert told["webhook-signature"] == f"v1,{mac}"
