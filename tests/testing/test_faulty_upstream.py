"""The upstream that misbehaves on command: what each fault looks like from outside, and what is kept of it."""

from __future__ import annotations

import asyncio
import http.client
import json
from urllib.parse import urlsplit

import pytest

from tidegate.testing.faults import AFTER_TOKENS, SLOW_FACTOR, Fault
from tidegate.testing.faulty_upstream import Connection, Control, Upstream
from tidegate.testing.memory_transport import MemoryTransport, memory_pair
from tidegate.testing.upstream_process import UpstreamProcess
from tidegate.testing.upstream_shape import Asked, Shape
from tidegate.testing.virtual_loop import run_virtually

SHAPE = Shape(slots=2, pace_s=1.0, first_s=2.0)


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.raw = b""
        self.is_closed = False

    def data_received(self, data: bytes) -> None:
        self.raw += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


def post(path: str = "/v1/chat/completions", **fields: object) -> bytes:
    body = json.dumps({"model": "m", "max_tokens": 5, **fields}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\nx-request-id: one\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def connect(upstream: Upstream) -> tuple[Client, MemoryTransport]:
    client = Client()
    transport, _ = memory_pair(client, Connection(upstream))
    return client, transport


def ask(fault: Fault, request: bytes, for_s: float = 12.0, heals_after_s: float = 1000.0) -> tuple[Client, Upstream]:
    """What came within so many seconds of one request under ``fault``."""
    upstream, client = Upstream(SHAPE), Client()

    async def main() -> None:
        await upstream.take(fault)
        transport, _ = memory_pair(client, Connection(upstream))
        transport.write(request)
        loop = asyncio.get_running_loop()
        ends_at, heals_at = loop.time() + for_s, loop.time() + heals_after_s
        while loop.time() < ends_at:
            await asyncio.sleep(0.25)
            if loop.time() >= heals_at:
                await upstream.take(Fault.NONE)
        transport.abort()
        await asyncio.sleep(0.01)

    run_virtually(main())
    return client, upstream


def only(upstream: Upstream) -> Asked:
    (asked,) = upstream.log
    return asked


def test_a_healthy_one_streams_its_words_at_its_pace() -> None:
    client, upstream = ask(Fault.NONE, post(stream=True), for_s=6.3)
    assert b"".join(b"w%d " % number for number in range(5)) == words(client.raw)
    assert client.raw.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    asked = only(upstream)
    assert (asked.end, asked.tokens, asked.request_id) == ("done", 5, "one")
    assert not upstream.running


def words(raw: bytes) -> bytes:
    """The contents of all events."""
    found = [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: {")]
    return "".join(each["choices"][0]["delta"]["content"] for each in found).encode()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_whole_answer_is_one_object(path: str) -> None:
    client, _ = ask(Fault.NONE, post(path))
    answer = json.loads(client.raw.partition(b"\r\n\r\n")[2])
    assert answer["usage"]["completion_tokens"] == 5
    assert "w0 w1 w2 w3 w4 " in json.dumps(answer)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "Say: w0 w1 w2 "},
        {"messages": [{"role": "user", "content": "Say"}, {"role": "assistant", "content": "w0 w1 w2 "}]},
    ],
)
def test_what_ends_with_its_words_is_gone_on_with(body: dict[str, object]) -> None:
    path = "/v1/completions" if "prompt" in body else "/v1/chat/completions"
    client, _ = ask(Fault.NONE, post(path, max_tokens=2, **body))
    assert b"w3 w4 " in client.raw


@pytest.mark.parametrize(
    ("fault", "begins"),
    [
        (Fault.HANG, b""),
        (Fault.CLOSE, b""),
        (Fault.ERROR_500, b"HTTP/1.1 500 "),
        (Fault.BUSY_429, b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 1"),
        (Fault.GARBAGE_HTTP, b"\x16\x03\x01"),
        (Fault.ENDLESS_HEAD, b"HTTP/1.1 200 OK\r\nx-padding: "),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_before_the_answer(fault: Fault, begins: bytes, stream: bool) -> None:
    client, upstream = ask(fault, post(stream=stream))
    assert client.raw.startswith(begins)
    assert bool(client.raw) is bool(begins)
    assert b"\r\n\r\n" not in client.raw or fault is not Fault.ENDLESS_HEAD
    assert only(upstream).end == ("left" if fault in (Fault.HANG, Fault.ENDLESS_HEAD) else fault.value)


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.RESET, Fault.STALL])
def test_a_fault_in_the_middle_comes_after_a_few_words(fault: Fault) -> None:
    client, upstream = ask(fault, post(stream=True))
    assert words(client.raw) == b"w0 w1 w2 "
    assert only(upstream).tokens == AFTER_TOKENS
    assert only(upstream).end == ("left" if fault is Fault.STALL else fault.value)
    assert not client.raw.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.RESET])
def test_a_whole_answer_is_cut_too(fault: Fault) -> None:
    client, _ = ask(fault, post())
    head, _, body = client.raw.partition(b"\r\n\r\n")
    length = int(next(line for line in head.split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1])
    assert 0 < len(body) < length


def test_an_error_event_stands_in_the_middle_of_a_stream() -> None:
    client, _ = ask(Fault.ERROR_EVENT, post(stream=True))
    assert client.raw.count(b'"delta"') == AFTER_TOKENS
    assert b'data: {"error":' in client.raw
    assert client.raw.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    whole, _ = ask(Fault.ERROR_EVENT, post())
    assert whole.raw.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("stream", [True, False])
def test_a_garbled_answer_is_complete_as_http(stream: bool) -> None:
    client, _ = ask(Fault.GARBAGE_BODY, post(stream=stream))
    assert client.raw.startswith(b"HTTP/1.1 200 OK")
    assert b"\xff" in client.raw
    assert client.raw.endswith(b"0\r\n\r\n") is stream


def test_a_slow_one_takes_ten_times_as_long() -> None:
    seconds = SLOW_FACTOR * (SHAPE.first_s + 4 * SHAPE.pace_s)
    assert not ask(Fault.SLOW, post(), for_s=seconds - 1)[0].raw
    assert ask(Fault.SLOW, post(), for_s=seconds + 1)[0].raw


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL])
def test_a_healed_one_goes_on_where_it_stopped(fault: Fault) -> None:
    client, upstream = ask(fault, post(stream=True), for_s=20.0, heals_after_s=8.0)
    assert words(client.raw) == b"w0 w1 w2 w3 w4 "
    assert only(upstream).end == "done"


def test_who_refuses_resets_what_is_open() -> None:
    async def main() -> None:
        upstream = Upstream(SHAPE)
        client, transport = connect(upstream)
        transport.write(post(stream=True))
        await asyncio.sleep(3.5)
        await upstream.take(Fault.REFUSE)
        await asyncio.sleep(0.01)
        assert client.is_closed
        assert only(upstream).end == "left"

    run_virtually(main())


def test_more_than_its_slots_wait_and_those_who_leave_free_theirs() -> None:
    async def main() -> None:
        upstream = Upstream(SHAPE)
        clients = [connect(upstream) for _ in range(4)]
        for _, transport in clients:
            transport.write(post(stream=True))
        await asyncio.sleep(0.5)
        assert (len(upstream.running), len(upstream.waiting)) == (2, 2)
        assert b'vllm:num_requests_waiting{engine="0"} 2' in upstream.page()
        clients[0][1].abort()
        clients[3][1].abort()
        await asyncio.sleep(0.5)
        assert (len(upstream.running), len(upstream.waiting)) == (2, 0)
        assert [each.end for each in upstream.log] == ["left", "", "", "left"]

    run_virtually(main())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n", b"200"),
        (b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n", b"200"),
        (b"GET /props HTTP/1.1\r\nhost: a\r\n\r\n", b"404"),
    ],
)
def test_its_health_stays_well(request_bytes: bytes, status: bytes) -> None:
    assert ask(Fault.HANG, request_bytes, for_s=1.0)[0].raw.startswith(b"HTTP/1.1 " + status)


def test_what_is_no_request_ends_the_connection() -> None:
    client, _ = ask(Fault.NONE, b"nonsense\r\n\r\n", for_s=1.0)
    assert (client.raw, client.is_closed) == (b"", True)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /log HTTP/1.1\r\nhost: a\r\n\r\n", b"200"),
        (b'PUT /fault HTTP/1.1\r\nhost: a\r\ncontent-length: 16\r\n\r\n{"fault":"hang"}', b"200"),
        (b'PUT /fault HTTP/1.1\r\nhost: a\r\ncontent-length: 14\r\n\r\n{"fault":"no"}', b"400"),
        (b"PUT /fault HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n[", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_the_control_port_says_what_it_takes(request_bytes: bytes, status: bytes) -> None:
    async def main() -> None:
        client, upstream = Client(), Upstream(SHAPE)
        transport, _ = memory_pair(client, Control(upstream))
        transport.write(request_bytes)
        await asyncio.sleep(0.1)
        assert client.raw.startswith(b"HTTP/1.1 " + status)
        assert (upstream.fault is Fault.HANG) is (b"hang" in request_bytes)

    run_virtually(main())


def test_as_a_process_it_fails_heals_dies_and_comes_back_on_its_port() -> None:
    with UpstreamProcess(slots=1, pace_s=0.001, first_s=0.001, kind="openai") as upstream:
        url = upstream.url
        assert status_of(url) == 200
        upstream.fail(Fault.ERROR_500)
        assert status_of(url) == 500
        upstream.fail(Fault.REFUSE)
        with pytest.raises(ConnectionError):
            status_of(url)
        upstream.heal()
        assert status_of(url) == 200
        assert [each["end"] for each in upstream.log()] == ["done", "error-500", "done"]
        upstream.freeze()
        upstream.thaw()
        with pytest.raises(RuntimeError, match="one of none, hang"):
            upstream._ask("PUT", "/fault", {"fault": "nonsense"})
        upstream.kill()
        assert upstream.pid == 0
        with pytest.raises(ConnectionError):
            status_of(url)
        upstream.start()
        assert (upstream.url, status_of(url)) == (url, 200)


def test_one_that_cannot_start_says_so() -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        UpstreamProcess(kind="nothing").start()


def status_of(url: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("POST", "/v1/completions", b'{"model":"m","max_tokens":2}')
        return connection.getresponse().status
    finally:
        connection.close()
