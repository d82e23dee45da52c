"""The whole service in front of the real engine: what the README promises."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import openai
import pytest

from tests.live import running
from tests.live.running import CHAT, MODEL, Answer, Engine, Exchange, Service, call, long_text, said, until

pytestmark = pytest.mark.live

SEQUENCES = 4
ENGINE_MODULE = "tidegate.engines.llamacpp.embedded"


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest) -> object:
    """Whatever a test does to the shared service: no permit leaks, no abort stays unconfirmed."""
    yield
    if "service" in request.fixturenames:
        service: Service = request.getfixturevalue("service")
        until(service.is_idle, 60, every_s=0.2)
        view = service.view()
        assert (view["permit_leaks"], view["abort_unconfirmed"]) == (0, 0)


def sdk(service: Service) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=120)


def test_it_is_ready_within_the_time_of_a_warm_start(service: Service) -> None:
    assert service.ready_s < 40
    assert service.is_idle()


def test_the_stock_sdk_gets_a_whole_answer(service: Service) -> None:
    with sdk(service) as client:
        answer = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Say hello."}], max_tokens=12
        )
        assert [model.id for model in client.models.list()] == [MODEL]
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens <= 12


def test_the_stock_sdk_gets_a_stream_that_ends_with_usage(service: Service) -> None:
    with sdk(service) as client:
        stream = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Count to five."}],
            max_tokens=12,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens <= 12


def test_the_stock_sdk_gets_a_legacy_completion(service: Service) -> None:
    with sdk(service) as client:
        answer = client.completions.create(model=MODEL, prompt=["Once upon", "Two"], max_tokens=4)
    assert [choice.index for choice in answer.choices] == [0, 1]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("stream", [True, False])
def test_curl_gets_an_answer(service: Service, stream: bool) -> None:
    body = json.dumps(said("Say hello.", max_tokens=6, stream=stream))
    command = ["curl", "-sSfN", f"{service.url}{CHAT}", "-H", "content-type: application/json", "-d", body]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.rstrip().endswith("data: [DONE]" if stream else "}")
    assert '"finish_reason"' in done.stdout


def test_a_repeated_disconnect_while_decoding_frees_the_slots_within_three_seconds(service: Service) -> None:
    for _ in range(3):
        body = said("Count to a thousand.", max_tokens=1000, stream=True, ignore_eos=True)
        exchange = Exchange(service.url, body)
        exchange.read_events(5)
        assert service.replica()["in_flight"] == 1
        left_at = exchange.leave()
        until(service.is_idle, 10)
        assert time.monotonic() - left_at <= 3.0


def test_a_disconnect_from_a_whole_answer_frees_the_slots_within_three_seconds(service: Service) -> None:
    exchange = Exchange(service.url, said("Count to a thousand.", max_tokens=1000, ignore_eos=True))
    time.sleep(2.0)
    assert service.replica()["in_flight"] == 1
    left_at = exchange.leave()
    until(service.is_idle, 10)
    assert time.monotonic() - left_at <= 3.0


@pytest.mark.parametrize("stream", [True, False])
def test_a_disconnect_in_a_prefill_frees_the_slots_long_before_its_end(service: Service, stream: bool) -> None:
    began = time.monotonic()
    assert call(service.url, CHAT, said(long_text(300, f"whole {stream}"), max_tokens=1)).status == 200
    prefill_s = time.monotonic() - began
    exchange = Exchange(service.url, said(long_text(300, f"left {stream}"), max_tokens=100, stream=stream))
    time.sleep(1.0)
    assert service.replica()["in_flight"] == 1
    exchange.leave()
    freed_s = until(service.is_idle, 60)
    assert 1.0 + freed_s <= prefill_s + 1.0


def test_streams_that_leave_while_others_go_on_free_their_slots_too(service: Service) -> None:
    bodies = [said(f"Tell story {n}.", max_tokens=160, stream=True, ignore_eos=True) for n in range(4)]
    exchanges = [Exchange(service.url, body) for body in bodies]
    for exchange in exchanges:
        exchange.read_events(3)
    for exchange in exchanges[:2]:
        exchange.leave()
    until(lambda: service.replica()["in_flight"] == 2 and not service.replica()["aborting"], 4)
    for exchange in exchanges[2:]:
        assert exchange.read_all().rstrip().endswith(b"data: [DONE]\n\n\r\n0")


def test_a_whole_answer_that_is_left_while_streams_go_on_frees_its_slot_too(service: Service) -> None:
    stream = Exchange(service.url, said("Tell a story.", max_tokens=400, stream=True, ignore_eos=True))
    stream.read_events(3)
    whole = Exchange(service.url, said("Tell another.", max_tokens=400, ignore_eos=True))
    until(lambda: service.replica()["in_flight"] == 2, 5)
    time.sleep(1.0)
    left_at = whole.leave()
    until(lambda: service.replica()["in_flight"] == 1 and not service.replica()["aborting"], 10)
    assert time.monotonic() - left_at <= 3.0
    stream.leave()


def at_once(service: Service, count: int, headers: dict[str, str] | None = None) -> list[Answer]:
    """Equal short questions, so that the machine's speed at prefill is not what is tested."""
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(call(service.url, CHAT, said("Say hello.", max_tokens=32), headers))

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_of_forty_at_once_some_are_answered_and_the_others_refused_in_time(service: Service) -> None:
    # A first wave: sequences and rates of a cold engine are not what a burst meets.
    assert {answer.status for answer in at_once(service, SEQUENCES)} == {200}
    answers = at_once(service, 40, {"x-tidegate-deadline-ms": "10000"})
    answered = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status != 200]
    assert len(answers) == 40
    assert len(answered) >= 8
    assert {answer.status for answer in refused} <= {429, 503}
    for answer in refused:
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["x-tidegate-reason"]
        assert answer.json["error"]["code"] == answer.headers["x-tidegate-reason"]
        assert answer.took_s < 10.0


def test_an_engine_killed_in_mid_stream_is_a_typed_error_and_comes_back(service: Service) -> None:
    exchange = Exchange(service.url, said("Count to a thousand.", max_tokens=1000, stream=True, ignore_eos=True))
    exchange.read_events(5)
    (pid,) = service.children(ENGINE_MODULE)
    os.kill(pid, signal.SIGKILL)
    stream = exchange.read_all()
    assert b"[DONE]" not in stream
    last = json.loads(stream.rstrip().removesuffix(b"0").rstrip().rsplit(b"data: ", 1)[1])
    assert last["error"]["type"]
    assert last["error"]["code"]
    until(lambda: running.is_ready(service), 30)
    until(lambda: call(service.url, CHAT, said("Are you back?", max_tokens=4)).status == 200, 30, every_s=0.5)
    assert service.children(ENGINE_MODULE) != [pid]


@pytest.fixture(scope="module")
def fronted(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> object:
    """The service in front of an engine that runs already, so that the test can look at the engine itself."""
    folder = tmp_path_factory.mktemp("fronted")
    config = folder / "tidegate.yaml"
    replica = {"url": engine.url, "api_key_env": "ENGINE_KEY"}
    config.write_text(json.dumps({"upstreams": {MODEL: {"replicas": [replica]}}}))
    env = {"ENGINE_KEY": engine.options.api_key}
    with running.service(folder / "serve.log", "--config", str(config), env=env) as started:
        yield started


def test_a_running_engine_is_recognised_with_its_slots(fronted: Service) -> None:
    assert call(fronted.url, CHAT, said("Hi", max_tokens=2)).status == 200
    assert fronted.replica()["slots"]["total"] == SEQUENCES
    assert fronted.replica()["sequences"] == SEQUENCES


COMPLETIONS = "/v1/completions"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(CHAT, said("Say hello.", max_tokens=24), id="chat"),
        pytest.param(CHAT, said("Say hello.", max_tokens=4, logprobs=True, top_logprobs=2), id="log-probabilities"),
        pytest.param(CHAT, said("Say hello.", max_tokens=24, stop=["!"]), id="stop"),
        pytest.param(CHAT, said("Say", max_tokens=1, stop=["I", "H", "Hello", "The"]), id="empty"),
        pytest.param(CHAT, said("JSON.", max_tokens=24, response_format={"type": "json_object"}), id="json"),
        pytest.param(COMPLETIONS, {"model": MODEL, "prompt": "Once 漢 upon", "max_tokens": 12}, id="completion"),
        pytest.param(
            COMPLETIONS,
            {"model": MODEL, "prompt": "Once", "max_tokens": 4, "logprobs": 2},
            id="completion with log-probabilities",
        ),
    ],
)
def test_a_whole_answer_is_the_engines_own_though_it_was_asked_for_as_a_stream(
    fronted: Service, engine: Engine, path: str, body: dict[str, object]
) -> None:
    fixed = {**body, "temperature": 0, "seed": 7}
    call(engine.url, path, fixed, engine.key)
    own, ours = call(engine.url, path, fixed, engine.key).json, call(fronted.url, path, fixed).json
    assert own.keys() == ours.keys()
    for of_its_own in ("id", "created"):
        del own[of_its_own], ours[of_its_own]
    assert own.pop("timings").keys() == ours.pop("timings").keys()
    assert own == ours


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(long_text(3000, "far"), id="far too long"),
        # Each digit is a token of its own: the estimate from bytes is far below the true length.
        pytest.param(" ".join("7" for _ in range(2600)), id="longer than it looks"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_over_long_prompt_is_refused_and_never_reaches_the_engine(
    fronted: Service, engine: Engine, text: str, stream: bool
) -> None:
    before = engine.figure("prompt_tokens_total")
    refused = call(fronted.url, CHAT, said(text, stream=stream, max_tokens=4))
    assert refused.status == 400
    assert refused.json["error"]["code"] == "context_length_exceeded"
    assert "retry-after" not in refused.headers
    assert refused.headers["x-should-retry"] == "false"
    assert engine.figure("prompt_tokens_total") == before


def test_load_of_others_is_seen_and_not_mistaken_for_ours(fronted: Service, engine: Engine) -> None:
    bodies = [said(f"Tell story {n}.", max_tokens=300, stream=True, ignore_eos=True) for n in range(3)]
    others = [Exchange(engine.url, body, engine.key) for body in bodies]
    for other in others:
        other.read_events(1)
    until(lambda: fronted.replica()["foreign_sequences"] == 3, 10, every_s=0.3)
    assert fronted.replica()["slots"]["free"] == 1
    assert call(fronted.url, CHAT, said("Hi", max_tokens=2)).status == 200
    for other in others:
        other.leave()
    until(fronted.is_idle, 10, every_s=0.3)


def processes_of(service: Service) -> list[int]:
    return [service.process.pid, *service.children("tidegate")]


def are_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_service_nothing_of_it_is_left(tmp_path: Path, number: signal.Signals) -> None:
    with running.service(tmp_path / "serve.log") as started:
        pids = processes_of(started)
        assert len(pids) == 3
        stream = Exchange(started.url, said("Go on.", max_tokens=30, stream=True, ignore_eos=True))
        stream.read_events(2)
        started.process.send_signal(number)
        stream.read_all()
        status = started.process.wait(45)
        assert status == (-number if number is signal.SIGKILL else 0)
        assert (b"[DONE]" in stream.seen) is (number is not signal.SIGKILL)
        until(lambda: are_gone(pids), 10)
