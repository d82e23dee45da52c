"""The JSON Schema of ``tidegate.yaml``, with the short forms that ``load`` writes out."""

from __future__ import annotations

from typing import Any

from tidegate.config.settings import Settings


def json_schema() -> dict[str, Any]:
    """Draft 2020-12, for editors that complete and check YAML."""
    schema = Settings.model_json_schema()
    upstream = schema["$defs"]["Upstream"]["properties"]
    replica = upstream["replicas"]["items"]
    upstream["replicas"]["items"] = {"anyOf": [replica, {"type": "string", "pattern": "^https?://"}]}
    upstream["engine"]["anyOf"].append({"const": "embedded"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
