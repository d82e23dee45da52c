"""``/admin/marks``: listed, set and lifted by operators; what is wrong is said, and nothing done."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.gateway.test_admin import Panel
from tidegate.gateway.admin import admin_app
from tidegate.gateway.admin_answers import Reloaded
from tidegate.gateway.messages import LiftMark, SetMark
from tidegate.policy.marks import MarkKind


@pytest.fixture
def panel() -> Panel:
    return Panel()


@pytest.fixture
def client(panel: Panel) -> TestClient:
    return TestClient(admin_app(panel), raise_server_exceptions=False)


def test_marks_are_listed_and_their_absence_is_an_honest_503(client: TestClient, panel: Panel) -> None:
    assert client.get("/admin/marks").json() == {"marks": [{"kind": "session", "key": "s1"}]}
    panel.is_answering = False
    assert client.get("/admin/marks").json()["error"]["code"] == "no_data_process"


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_mark_is_set_as_it_is_asked_for(client: TestClient, panel: Panel, method: str) -> None:
    body = {"kind": "source", "key": "10.0.0.1", "ttl_s": 60, "reason": "scraper", "evidence": "ticket 7"}
    answer = client.request(method, "/admin/marks", json=body)
    assert (answer.status_code, answer.json()["applied"]) == (200, True)
    assert panel.orders == [SetMark(MarkKind.SOURCE, "10.0.0.1", 60.0, "scraper", "ticket 7")]
    assert panel.asked_by == ["admin API, testclient"]


def test_what_is_left_out_has_a_default(client: TestClient, panel: Panel) -> None:
    client.put("/admin/marks", json={"kind": "user", "key": "u"})
    assert panel.orders == [SetMark(MarkKind.USER, "u", 600.0, "blocked", "asked for by an operator")]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "planet", "key": "k"}, "send a mark as JSON"),
        ({"kind": "user"}, "send a mark as JSON"),
        ({"kind": "user", "key": "k", "for": 5}, "send a mark as JSON"),
        ({"kind": "user", "key": ""}, "key must be 1 to 256 printable characters"),
        ({"kind": "user", "key": "k" * 257}, "key must be"),
        ({"kind": "user", "key": "k", "reason": "a\nb"}, "reason must be 1 to 40"),
        ({"kind": "user", "key": "k", "evidence": "e" * 501}, "evidence must be"),
        ({"kind": "user", "key": "k", "ttl_s": 0}, "ttl_s must lie above 0"),
        ({"kind": "user", "key": "k", "ttl_s": 90000}, "no mark lasts longer than a day"),
    ],
)
def test_a_mistake_is_said_and_nothing_done(client: TestClient, panel: Panel, body: dict[str, Any], said: str) -> None:
    answer = client.put("/admin/marks", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_mark")
    assert said in answer.json()["error"]["message"]
    assert panel.orders == []


def test_what_the_policies_refuse_is_a_422(client: TestClient, panel: Panel) -> None:
    panel.marking = Reloaded(problems=["no replica is called 'b'; there are a1, a2"])
    answer = client.put("/admin/marks", json={"kind": "replica", "key": "b"})
    assert (answer.status_code, answer.json()["problems"]) == (422, panel.marking.problems)


def test_a_mark_is_lifted_by_kind_and_key(client: TestClient, panel: Panel) -> None:
    assert client.delete("/admin/marks/session/org/s%201").status_code == 200
    assert panel.orders == [LiftMark(MarkKind.SESSION, "org/s 1")]
    panel.marking = Reloaded()
    assert client.delete("/admin/marks/session/s2").json()["error"]["code"] == "mark_not_found"
    assert client.delete("/admin/marks/planet/x").json()["error"]["code"] == "unknown_kind"
    panel.marking = Reloaded(problems=["the data process is not running"])
    assert client.delete("/admin/marks/session/s2").status_code == 422


def test_a_token_opens_them_like_the_rest_of_the_admin_api(panel: Panel) -> None:
    guarded = TestClient(admin_app(panel, ("0" * 64,)), raise_server_exceptions=False)
    for method, path in (("GET", "/admin/marks"), ("PUT", "/admin/marks"), ("DELETE", "/admin/marks/user/u")):
        assert guarded.request(method, path).status_code == 401
    assert panel.orders == []
