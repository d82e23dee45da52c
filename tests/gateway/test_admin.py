"""The admin API, called as ASGI in memory: what it answers, and to whom."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse
from starlette.testclient import TestClient

from tests.lens.rows import row, unsent
from tidegate.gateway.admin import admin_app
from tidegate.gateway.admin_answers import Reloaded
from tidegate.gateway.audit import Audit
from tidegate.gateway.messages import LiftMark, SetMark
from tidegate.lens.counted import Snapshot
from tidegate.lens.exposition import ParentFacts
from tidegate.lens.metrics import Metrics
from tidegate.lens.ring import Ring
from tidegate.policy.decisions import Reason


class Panel:
    """A parent of which the test sets every answer."""

    def __init__(self) -> None:
        self.ring = Ring(8)
        self.facts = ParentFacts(started_at=1.0)
        self.reason = ""
        self.is_answering = True
        self.reloaded = Reloaded(changes=["replica chat-1 added"])
        self.drained: list[tuple[str, bool]] = []
        self.slept: list[tuple[str, bool]] = []
        self.marked: list[dict[str, Any]] = [{"kind": "session", "key": "s1"}]
        self.orders: list[SetMark | LiftMark] = []
        self.marking = Reloaded(changes=["session s1: marked"])
        self.patches: list[tuple[object, bool]] = []
        self.asked_by: list[str] = []
        self.audit = Audit(lambda _level, _text: None, clock=lambda: 5.0)

    def unix_minus_monotonic_s(self) -> float:
        return 1e9

    def not_ready_because(self) -> str:
        return self.reason

    def config(self) -> dict[str, Any]:
        values = {"mode": "production", "retries.ratio": 0.2, "retries.most": 50}
        return {"values": values, "origins": {"retries.ratio": "admin API", "retries.most": "tidegate.yaml:3:4"}}

    async def view(self) -> dict[str, Any] | None:
        return {"permits_open": 2, "deadline": float("inf")} if self.is_answering else None

    async def snapshot(self) -> Snapshot | None:
        return Metrics(["chat"], ["interactive"], 1.0).snapshot({}, 0) if self.is_answering else None

    async def reload(self, who: str) -> Reloaded:
        self.asked_by.append(who)
        return self.reloaded

    async def change(self, patch: Mapping[str, Any] | None, who: str, *, is_dry: bool) -> Reloaded:
        self.asked_by.append(who)
        self.patches.append((patch, is_dry))
        return self.reloaded

    async def sleep(self, replica: str, on: bool, who: str) -> str:
        self.asked_by.append(who)
        self.slept.append((replica, on))
        return "" if replica == "org/chat-0" else f"{replica} is no vLLM of ours"

    async def marks(self) -> list[dict[str, Any]] | None:
        return self.marked if self.is_answering else None

    async def mark(self, order: SetMark | LiftMark, who: str) -> Reloaded:
        self.asked_by.append(who)
        self.orders.append(order)
        return self.marking

    async def drain(self, replica: str, on: bool, who: str) -> bool:
        self.asked_by.append(who)
        self.drained.append((replica, on))
        return replica == "chat-0"


@pytest.fixture
def panel() -> Panel:
    return Panel()


@pytest.fixture
def client(panel: Panel) -> TestClient:
    return TestClient(admin_app(panel), raise_server_exceptions=False)


def test_liveness_does_not_depend_on_readiness_or_load(client: TestClient, panel: Panel) -> None:
    panel.reason, panel.is_answering = "engine starts", False
    assert client.get("/health").json() == {"status": "ok"}


def test_readiness_says_why_not(client: TestClient, panel: Panel) -> None:
    assert client.get("/ready").status_code == 200
    panel.reason = "no replica of chat is ready: connection refused"
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == panel.reason


@pytest.mark.parametrize(("is_answering", "up"), [(True, 1.0), (False, 0.0)])
def test_metrics_are_served_even_when_the_data_process_is_not_there(
    client: TestClient, panel: Panel, is_answering: bool, up: float
) -> None:
    panel.is_answering = is_answering
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    [family] = [family for family in parse(answer.text) if family.name == "tidegate_up"]
    assert family.samples[0].value == up


def test_the_view_is_json_and_its_absence_an_honest_503(client: TestClient, panel: Panel) -> None:
    assert client.get("/admin/view").json() == {"permits_open": 2, "deadline": None}
    panel.is_answering = False
    answer = client.get("/admin/view")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_data_process")


def test_a_request_is_explained_by_its_id(client: TestClient, panel: Panel) -> None:
    panel.ring.add([unsent(request_id="a/b", refused=Reason.QUEUE_FULL, status=429)])
    [found] = client.get("/admin/requests/a/b").json()["requests"]
    assert found["refused"] == "queue_full"
    assert "was refused with 429 (queue_full)" in found["explanation"][0]
    assert found["arrived_unix_s"] == 1e9 + 100


def test_an_unknown_request_id_is_a_404_that_says_where_ids_come_from(client: TestClient) -> None:
    answer = client.get("/admin/requests/nope")
    assert answer.status_code == 404
    assert "x-request-id" in answer.json()["error"]["message"]


def test_recent_requests_come_newest_first_within_the_limit(client: TestClient, panel: Panel) -> None:
    panel.ring.add([row(id=n, request_id=f"req-{n}") for n in range(10)])
    listed = client.get("/admin/requests?limit=2").json()
    assert [each["id"] for each in listed["requests"]] == [9, 8]
    assert (listed["kept"], listed["size"], listed["lost"]) == (8, 8, 0)


@pytest.mark.parametrize("limit", ["0", "-1", "ten", "1.5"])
def test_a_bad_limit_is_a_400_that_names_it(client: TestClient, limit: str) -> None:
    answer = client.get(f"/admin/requests?limit={limit}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "limit")


def test_reload_tells_the_difference_or_keeps_the_old_and_tells_the_problems(client: TestClient, panel: Panel) -> None:
    answer = client.post("/admin/reload")
    assert (answer.status_code, answer.json()) == (
        200,
        {"applied": True, "changes": ["replica chat-1 added"], "problems": []},
    )
    panel.reloaded = Reloaded(problems=["tidegate.yaml:3:5: server.port: must be a number"])
    answer = client.post("/admin/reload")
    assert (answer.status_code, answer.json()["applied"]) == (422, False)


def test_a_change_is_tried_applied_and_taken_back(client: TestClient, panel: Panel) -> None:
    patch = {"retries": {"ratio": 0.2}}
    tried = client.patch("/admin/config?dry_run=1", json=patch)
    assert (tried.status_code, tried.json()["applied"], tried.json()["changes"]) == (200, False, panel.reloaded.changes)
    assert client.patch("/admin/config", json=patch).json()["applied"] is True
    assert client.delete("/admin/config").json()["applied"] is True
    assert panel.patches == [(patch, True), (patch, False), (None, False)]
    panel.reloaded = Reloaded(problems=["admin API: retries.ratio: must be at most 1", "admin API: a: unknown key"])
    refused = client.patch("/admin/config", json=patch)
    assert (refused.status_code, refused.json()["problems"]) == (422, panel.reloaded.problems)


@pytest.mark.parametrize(("query", "body", "code"), [("?dry_run=yes", "{}", "bad_dry_run"), ("", "[1]", "bad_patch")])
def test_a_change_that_cannot_be_read_is_a_400(client: TestClient, query: str, body: str, code: str) -> None:
    answer = client.patch(f"/admin/config{query}", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_the_audit_is_shown_and_names_address_and_token(panel: Panel) -> None:
    token = hashlib.sha256(b"letmein").hexdigest()
    client = TestClient(admin_app(panel, (token,)), client=("10.0.0.9", 1234))
    holder = {"authorization": "Bearer letmein"}
    assert client.patch("/admin/config", json={"a": 1}).status_code == 401
    for method, path in (("PATCH", "config"), ("POST", "reload"), ("POST", "drain?replica=chat-0")):
        assert client.request(method, f"/admin/{path}", headers=holder, content=b"{}").status_code == 200
    assert panel.asked_by == [f"admin API, 10.0.0.9, token {token[:8]}"] * 3
    panel.audit.note("file", "reload", ["a: 1 -> 2"])
    (entry,) = client.get("/admin/audit", headers=holder).json()["entries"]
    assert entry == {"at_unix_s": 5.0, "who": "file", "what": "reload", "changes": ["a: 1 -> 2"], "problems": []}


def test_a_replica_is_drained_and_taken_back(client: TestClient, panel: Panel) -> None:
    assert client.post("/admin/drain?replica=chat-0").json() == {"replica": "chat-0", "draining": True}
    assert client.post("/admin/drain?replica=chat-0&on=false").json() == {"replica": "chat-0", "draining": False}
    assert panel.drained == [("chat-0", True), ("chat-0", False)]


def test_a_replica_is_sent_to_sleep_and_woken(client: TestClient, panel: Panel) -> None:
    assert client.post("/admin/replicas/org/chat-0/sleep").json() == {"replica": "org/chat-0", "asleep": True}
    assert client.post("/admin/replicas/org/chat-0/wake").json() == {"replica": "org/chat-0", "asleep": False}
    assert panel.slept == [("org/chat-0", True), ("org/chat-0", False)]


def test_an_order_that_was_not_carried_out_says_why(client: TestClient) -> None:
    refused = client.post("/admin/replicas/chat-1/sleep")
    assert (refused.status_code, refused.json()["error"]["message"]) == (409, "chat-1 is no vLLM of ours")
    unknown = client.post("/admin/replicas/chat-1/dance")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_order")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "missing_replica"),
        ("?replica=chat-0&on=yes", 400, "bad_on"),
        ("?replica=ghost", 404, "replica_not_found"),
    ],
)
def test_a_drain_that_cannot_be_is_refused_with_the_reason(
    client: TestClient, query: str, status: int, code: str
) -> None:
    answer = client.post(f"/admin/drain{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nope", 404), ("GET", "/admin/reload", 405)])
def test_unknown_paths_and_methods_are_errors_in_openai_shape(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_a_fault_of_ours_is_a_json_500(client: TestClient, panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, Any]:
        raise RuntimeError("broken")

    monkeypatch.setattr(panel, "config", fail)
    answer = client.get("/admin/config")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")


def test_with_tokens_only_their_holders_reach_the_admin_paths(panel: Panel) -> None:
    client = TestClient(admin_app(panel, (hashlib.sha256(b"secret").hexdigest(),)))
    assert client.get("/admin/config").status_code == 401
    assert client.get("/admin/config", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/admin/config", headers={"authorization": "Basic secret"}).status_code == 401
    assert client.get("/admin/config", headers={"authorization": "Bearer secret"}).json() == panel.config()
    assert client.get("/metrics").status_code == 200
    assert client.get("/health").status_code == 200


def test_a_web_page_of_another_origin_cannot_give_orders(client: TestClient, panel: Panel) -> None:
    answer = client.post("/admin/drain?replica=chat-0", headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")
    assert panel.drained == []
    own = client.post("/admin/drain?replica=chat-0", headers={"origin": "http://testserver"})
    assert own.status_code == 200
