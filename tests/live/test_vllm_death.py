"""A real vLLM behind Tidegate dies, or is told to go. Each test has a server of its own, one after the other."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from bench.vllm_runs import place
from tests.live.running import Exchange, until
from tests.live.vllm_serving import answers, post, protected, story

pytestmark = [pytest.mark.live, pytest.mark.skipif(not place.is_there(), reason=place.MISSING)]


@pytest.mark.parametrize("title", ["VLLM::EngineCore", "VLLM::Worker"])
def test_a_killed_engine_ends_the_stream_with_an_error_and_no_done(title: str, tmp_path: Path) -> None:
    with protected(tmp_path) as both:
        stream = Exchange(both.service.url, story(1, 900, stream=True))
        stream.read_events(3)
        (victim,) = both.stop_engine_process(title)
        os.kill(victim, signal.SIGKILL)
        seen = stream.read_all()
        assert b'"error"' in seen
        assert b"[DONE]" not in seen
        # Nothing restarts a process that says 0, so the exit status proves nothing about the engine.
        assert both.engine.process.wait(30) is not None
        until(lambda: not answers(both.engine.url), 10)
        later = post(both.service.url, story(2, 4), x_tidegate_deadline_ms="2000")
        assert later.status in (429, 502, 503, 504)
        assert json.loads(later.body)["error"]["code"]
        view = both.service.view()
        assert (view["open_requests"], view["permits"]) == (0, 0)


def test_sigterm_lets_a_running_stream_finish(tmp_path: Path) -> None:
    with protected(tmp_path, "--shutdown-timeout", "60") as both:
        stream = Exchange(both.service.url, story(1, 60, stream=True))
        stream.read_events(3)
        both.engine.process.send_signal(signal.SIGTERM)
        seen = stream.read_all()
        assert b"[DONE]" in seen
        assert b'"error"' not in seen
        assert both.engine.process.wait(60) is not None
