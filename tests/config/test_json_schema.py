from __future__ import annotations

import json

from tidegate.config.json_schema import json_schema


def test_editors_learn_every_section_and_the_short_forms() -> None:
    schema = json_schema()
    assert "tail" in schema["properties"]
    upstream = schema["$defs"]["Upstream"]["properties"]
    assert {"type": "string", "pattern": "^https?://"} in upstream["replicas"]["items"]["anyOf"]
    assert {"const": "embedded"} in upstream["engine"]["anyOf"]
    assert schema["$defs"]["TimeoutsConfig"]["properties"]["multiplier"]["exclusiveMinimum"] == 1
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema
