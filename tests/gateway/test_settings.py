from __future__ import annotations

import json

import msgspec
import pytest

from tidegate.gateway.settings import ApiKey, Endpoint, Limits, Settings, Timers, from_plain, to_plain
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig


def settings() -> Settings:
    replica = ReplicaConfig(name="r", upstream="m", capacity=Capacity(kv_tokens=4096, sequences=8))
    return Settings(
        path=PathConfig(replicas=(replica,)),
        endpoints=(Endpoint(name="r", host="h", port=1, api_key="k"),),
        limits=Limits(body_bytes=5),
        timers=Timers(heartbeat_s=0.0),
        api_keys=(ApiKey(sha256="ab", tenant="t"),),
        trusted_proxies=("10.0.0.0/8",),
    )


def test_settings_survive_the_way_to_the_data_process() -> None:
    assert from_plain(json.loads(json.dumps(to_plain(settings())))) == settings()


def test_a_wrong_field_is_named() -> None:
    plain = to_plain(settings())
    plain["endpoints"][0]["port"] = "eighty"
    with pytest.raises(msgspec.ValidationError, match=r"\$\.endpoints\[0\]\.port"):
        from_plain(plain)


def test_an_engine_is_asked_where_its_requests_go() -> None:
    endpoint = Endpoint(name="a", host="::1", port=443, base_path="/x", api_key="k", is_tls=True, server_name="e")
    address = endpoint.address()
    assert (address.url, address.api_key) == ("https://[::1]:443/x", "k")
    assert address.tls is not None
    assert address.tls.server_name == "e"
    assert Endpoint(name="a", host="h", port=80, proxy="http://p:1").address().proxy == "http://p:1"
