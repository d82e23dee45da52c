"""A template renders what transformers renders, and refuses with None what only the engine can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import ConfigError
from tidegate.gateway.chat_template import ChatTemplate, read_template

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def rendered(text: str, **tokens: str) -> str | None:
    return ChatTemplate(text, tokens).render(HI)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>hi"),
        ("{% if add_generation_prompt %}\n  x\n{% endif %}\ny", "  x\ny"),
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "hi"}'),
        ("{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}{% endfor %}z", "z"),
        ("{% if tools is none and documents is none %}none{% endif %}", "none"),
        ("{{ strftime_now('%%') }}", "%"),
    ],
)
def test_what_model_cards_count_on_is_there(text: str, expected: str) -> None:
    assert rendered(text, bos_token="<s>") == expected


@pytest.mark.parametrize("text", ["{{ raise_exception('roles must alternate') }}", "{{ 1 + 'a' }}", "{{ x.y.z }}"])
def test_a_chat_that_the_template_refuses_is_left_to_the_engine(text: str) -> None:
    assert rendered(text) is None


def test_a_template_cannot_reach_out_of_its_sandbox() -> None:
    assert rendered("{{ ''.__class__.__mro__[1].__subclasses__() }}") is None
    assert rendered("{{ messages.append(1) }}") is None


def test_a_template_that_does_not_compile_is_refused_with_words() -> None:
    with pytest.raises(ConfigError, match="chat template does not compile"):
        ChatTemplate("{% for %}", {})


def write(folder: Path, config: object) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def test_it_stands_in_a_file_of_its_own_or_in_the_tokenizers_configuration(tmp_path: Path) -> None:
    assert read_template(tmp_path) is None
    write(tmp_path, {"bos_token": {"content": "<b>"}, "chat_template": "{{ bos_token }}one"})
    template = read_template(tmp_path)
    assert template is not None
    assert template.render(HI) == "<b>one"
    write(tmp_path, {"chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "two"}]})
    template = read_template(tmp_path)
    assert template is not None
    assert template.render(HI) == "two"
    (tmp_path / "chat_template.jinja").write_text("three")
    template = read_template(tmp_path)
    assert template is not None
    assert template.render(HI) == "three"


@pytest.mark.parametrize("config", [[], {"chat_template": [{"name": "other", "template": "x"}]}, {"chat_template": 1}])
def test_a_configuration_without_one_has_none(tmp_path: Path, config: object) -> None:
    write(tmp_path, config)
    assert read_template(tmp_path) is None


def test_a_configuration_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json"):
        read_template(tmp_path)
