"""``tidegate serve`` end to end, over real sockets and processes, in front of a scripted engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.cli.scripted_upstream import ScriptedUpstream
from tests.cli.served import Served, serving
from tidegate.gateway.ports import open_port
from tidegate.wire.fetch import fetch

FREE_PORTS = ("--port", "0", "--admin-port", "0")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def sample(served: Served, name: str) -> float:
    reply = await fetch(f"{served.admin}/metrics", timeout_s=10)
    samples = [each for family in parse(reply.body.decode()) for each in family.samples if each.name == name]
    return sum(each.value for each in samples)


def test_a_bare_url_is_enough_to_serve_stream_explain_measure_and_stop(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving("--upstream", upstream.url, *FREE_PORTS, "--log-requests", folder=tmp_path) as served,
        ):
            await served.printed("Try: curl")
            assert "[INFO] Server ready. Free slots: unknown" in served.lines
            assert "[INFO] Starting inference server..." in served.lines
            assert "client deadline" in served.text

            models = await fetch(f"{served.api}/v1/models", timeout_s=10)
            assert [each["id"] for each in json.loads(models.body)["data"]] == ["scripted"]
            whole = await served.chat("scripted", "whole")
            assert json.loads(whole.body)["choices"][0]["message"]["content"] == "Hello there"
            stream = await served.chat("scripted", "stream", stream=True)
            assert stream.body.endswith(b"data: [DONE]\n\n")
            refused = await served.chat("ghost", "refused")
            assert (refused.status, json.loads(refused.body)["error"]["code"]) == (404, "model_not_found")

            await served.printed("request id=refused")
            status, found = await served.ask("/admin/requests/refused")
            assert status == 200
            assert "model_not_found" in found["requests"][0]["explanation"][0]
            assert await sample(served, "tidegate_up") == 1
            assert await sample(served, "tidegate_requests_total") == 3
            assert await sample(served, "tidegate_permits_open") == 0
            assert (await served.ask("/ready"))[0] == 200

            children = children_of(served.process.pid)
            assert await served.stop() == 0
            assert served.lines[-1] == "[INFO] Stopped."
            assert len(children) == 1
            assert not any(is_alive(child) for child in children)

    asyncio.run(run())


def test_a_data_process_that_is_killed_is_started_again_on_the_same_port(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving("--upstream", f"chat={upstream.url}", *FREE_PORTS, folder=tmp_path) as served,
        ):
            await served.printed("Try: curl")
            [child] = children_of(served.process.pid)
            os.kill(child, signal.SIGKILL)
            await served.printed("the data process runs again")
            assert (await served.chat("chat", "after")).status == 200
            assert upstream.asked[-1]["model"] == "scripted"
            assert await sample(served, "tidegate_data_process_restarts_total") == 1
            assert await served.stop(signal.SIGTERM) == 0

    asyncio.run(run())


def test_running_requests_end_before_the_service_does(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving("--upstream", f"chat={upstream.url}", *FREE_PORTS, folder=tmp_path) as served,
        ):
            await served.printed("Try: curl")
            upstream.hold.clear()
            running = asyncio.create_task(served.chat("chat", "slow", stream=True))
            await upstream.is_asked.wait()
            served.process.send_signal(signal.SIGTERM)
            await served.printed("Stopping: running requests have 30 s")
            assert served.process.returncode is None
            upstream.hold.set()
            assert (await running).body.endswith(b"data: [DONE]\n\n")
            assert await served.ended() == 0

    asyncio.run(run())


def test_an_operator_changes_parameters_while_a_stream_runs(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving("--upstream", f"chat={upstream.url}", *FREE_PORTS, folder=tmp_path) as served,
        ):
            await served.printed("Try: curl")
            upstream.hold.clear()
            running = asyncio.create_task(served.chat("chat", "slow", stream=True))
            await upstream.is_asked.wait()
            patch = {"retries": {"ratio": 0.2}, "upstreams.chat.replicas[0].sequences": 3}
            status, tried = await served.ask("/admin/config?dry_run=1", "PATCH", patch)
            assert (status, tried["applied"], "retries.ratio: 0.1 -> 0.2" in tried["changes"]) == (200, False, True)
            assert (await served.ask("/admin/view"))[1]["replicas"]["chat-0"]["sequences"] != 3
            assert (await served.ask("/admin/config", "PATCH", patch))[1]["applied"] is True
            assert (await served.ask("/admin/view"))[1]["replicas"]["chat-0"]["sequences"] == 3
            _, config = await served.ask("/admin/config")
            assert (config["values"]["retries.ratio"], config["origins"]["retries.ratio"]) == (0.2, "admin API")
            await served.printed("audit: admin API, 127.0.0.1: config: retries.ratio: 0.1 -> 0.2")

            status, refused = await served.ask("/admin/config", "PATCH", {"retries": {"ratio": 7}, "server.port": 1})
            assert (status, refused["applied"], len(refused["problems"])) == (422, False, 1)
            status, refused = await served.ask("/admin/config", "PATCH", {"server.port": 1})
            assert (status, refused["problems"]) == (422, ["server.port: is read at the start only"])
            assert (await served.ask("/admin/reload", "POST"))[1] == {"applied": True, "changes": [], "problems": []}
            assert (await served.ask("/admin/config", "DELETE"))[1]["applied"] is True
            assert "retries.ratio" not in (await served.ask("/admin/config"))[1]["origins"]
            assert [each["what"] for each in (await served.ask("/admin/audit"))[1]["entries"]] == ["config"] * 4
            upstream.hold.set()
            assert (await running).body.endswith(b"data: [DONE]\n\n")
            assert await served.stop() == 0

    asyncio.run(run())


def test_a_changed_file_overtakes_what_an_operator_set(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as upstream:
            file, engine = tmp_path / "tidegate.yaml", f"upstreams: {{chat: {{replicas: ['{upstream.url}']}}}}\n"
            file.write_text(engine)
            async with serving(*FREE_PORTS, folder=tmp_path) as served:
                await served.printed("Try: curl")
                await served.ask("/admin/config", "PATCH", {"retries": {"ratio": 0.2, "most": 50}})
                file.write_text(f"{engine}retries: {{ratio: 0.3}}\n")
                served.process.send_signal(signal.SIGHUP)
                await served.printed("retries.ratio: has changed below the admin API's value, which is gone")
                values = (await served.ask("/admin/config"))[1]["values"]
                assert (values["retries.ratio"], values["retries.most"]) == (0.3, 50.0)
                assert await served.stop() == 0

    asyncio.run(run())


def test_a_second_signal_kills_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            ScriptedUpstream() as upstream,
            serving("--upstream", f"chat={upstream.url}", *FREE_PORTS, folder=tmp_path) as served,
        ):
            await served.printed("Try: curl")
            upstream.hold.clear()
            running = asyncio.create_task(served.chat("chat", "slow", stream=True))
            await upstream.is_asked.wait()
            children = children_of(served.process.pid)
            served.process.send_signal(signal.SIGINT)
            await served.printed("Stopping")
            assert await served.stop(signal.SIGINT) == 130
            assert not any(is_alive(child) for child in children)
            with pytest.raises(Exception, match="closed before the answer was complete"):
                await running

    asyncio.run(run())


def test_a_saved_file_and_sighup_reload_and_a_bad_file_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as first, ScriptedUpstream(("Other",)) as second:
            file = tmp_path / "tidegate.yaml"
            file.write_text(f"server: {{port: 0, admin_port: 0}}\nupstreams: {{chat: {{replicas: ['{first.url}']}}}}\n")
            async with serving(folder=tmp_path) as served:
                await served.printed("Try: curl")
                file.write_text("server: {port: many}\n")
                await served.printed("reload refused")
                assert (await served.chat("chat", "still")).status == 200
                assert await sample(served, "tidegate_config_last_reload_successful") == 0

                served_both = (
                    f"upstreams:\n  chat: {{replicas: ['{first.url}']}}\n  code: {{replicas: ['{second.url}']}}\n"
                )
                file.write_text("server: {port: 0, admin_port: 0}\n" + served_both)
                await served.printed("reloaded")
                assert b"Other" in (await served.chat("code", "new")).body
                assert await sample(served, "tidegate_config_last_reload_successful") == 1

                served.process.send_signal(signal.SIGHUP)
                await served.printed("reloaded: 0 keys differ")
                file.write_text("server: {port: 0, admin_port: 0}\n")
                await served.printed("no upstream would be left")
                file.write_text("server: {port: 0, admin_port: 0}\n" + served_both)
                await served.printed("reloaded: 0 keys differ", times=2)
                status, told = await served.ask("/admin/reload", "POST")
                assert (status, told) == (200, {"applied": True, "changes": [], "problems": []})
                assert (await served.ask("/admin/drain?replica=code-0", "POST"))[0] == 200
                assert (await served.ask("/admin/view"))[1]["replicas"]["code-0"]["draining"]
                assert (await served.ask("/admin/config"))[1]["values"]["upstreams.code.replicas[0].url"] == second.url
                assert await served.stop() == 0

    asyncio.run(run())


def test_an_engine_that_comes_up_late_is_taken_in_then(tmp_path: Path) -> None:
    async def run() -> None:
        upstream = ScriptedUpstream()
        with open_port("127.0.0.1", 0, "--port") as sock:
            port = sock.getsockname()[1]
        late = ("--upstream", f"chat=http://127.0.0.1:{port}", "--set", "shaping.enabled=false")
        async with serving(*late, *FREE_PORTS, folder=tmp_path) as served:
            await served.printed("it gets no requests until it answers")
            await upstream.listen(port)
            await served.printed("Try: curl")
            await served.printed("chat-0: openai at")
            assert (await served.chat("chat", "late")).status == 200
            assert await served.stop() == 0
        await upstream.close()

    asyncio.run(run())


@pytest.mark.parametrize(("overcommit", "status"), [("clamp", 0), ("fail", 1)])
def test_more_sequences_than_a_running_engine_has_slots_are_clamped_or_refused_before_serving(
    tmp_path: Path, overcommit: str, status: int
) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as upstream:
            upstream.props = {"total_slots": 2, "default_generation_settings": {"n_ctx": 512}}
            replica = f"{{url: '{upstream.url}', sequences: 8}}"
            config = f"slots: {{overcommit: {overcommit}}}\nupstreams: {{chat: {{replicas: [{replica}]}}}}\n"
            (tmp_path / "tidegate.yaml").write_text(config)
            async with serving(*FREE_PORTS, folder=tmp_path) as served:
                if status == 0:
                    await served.printed("Try: curl")
                    assert (await served.ask("/admin/view"))[1]["replicas"]["chat-0"]["sequences"] == 2
                    assert await served.stop() == 0
                assert await served.ended() == status
            (said,) = [line for line in served.lines if "8 sequences asked of chat-0, which has 2 slots" in line]
            assert said.startswith("[WARN]" if status == 0 else "slots.overcommit: fail") is True
            assert ("OpenAI API at" in served.text) is (status == 0)

    asyncio.run(run())


@pytest.mark.parametrize(("taken", "flag"), [("--port", "--port"), ("--admin-port", "--admin-port")])
def test_a_taken_port_ends_the_start_with_holder_and_flag(tmp_path: Path, taken: str, flag: str) -> None:
    async def run() -> None:
        other = "--admin-port" if taken == "--port" else "--port"
        with open_port("127.0.0.1", 0, "--port") as sock:
            port = str(sock.getsockname()[1])
            async with (
                ScriptedUpstream() as upstream,
                serving("--upstream", f"chat={upstream.url}", taken, port, other, "0", folder=tmp_path) as served,
            ):
                assert await served.ended() == 1
        assert f"(pid {os.getpid()})" in served.text
        assert f"choose another port with {flag}" in served.text
        assert "Traceback" not in served.text

    asyncio.run(run())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--mode", "fast"), "mode"),
        (("--upstream", "http://127.0.0.1:9"), "name the model: --upstream NAME=URL"),
        (("--upstream", "nonsense"), "must be [NAME=]URL"),
        (("--host", "0.0.0.0", "--upstream", "a=http://127.0.0.1:9"), "server.api_keys is empty"),
    ],
)
def test_what_cannot_be_served_is_said_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    async def run() -> None:
        async with serving(*arguments, *FREE_PORTS, folder=tmp_path) as served:
            assert await served.ended() == 1
        assert problem in served.text
        assert "Traceback" not in served.text

    asyncio.run(run())
