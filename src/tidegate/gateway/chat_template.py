"""A model's chat template, applied as the engines apply it: the rendering is what they tokenize."""

from __future__ import annotations

import importlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
CHANGES_PROMPT = frozenset(
    {
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "documents",
        "chat_template",
        "chat_template_kwargs",
        "add_generation_prompt",
        "continue_final_message",
        "add_special_tokens",
        "truncate_prompt_tokens",
        "mm_processor_kwargs",
        "response_format",
        "reasoning_effort",
        "reasoning_format",
    }
)
"""Fields of a chat request that engines weave into the prompt, each in a way of its own: such a request is left
to the engine's own count."""
PLAIN_MESSAGE = frozenset({"role", "content"})


class ChatTemplate:
    """Compiled once. Sandboxed, since it came with a model."""

    def __init__(self, text: str, special_tokens: dict[str, str]) -> None:
        """Raises ConfigError for a template that does not compile, or without jinja2."""
        self._special_tokens = special_tokens
        try:
            sandbox: Any = importlib.import_module("jinja2.sandbox")
            jinja2: Any = importlib.import_module("jinja2")
        except ModuleNotFoundError as error:
            raise ConfigError([f"{error}: a chat template needs jinja2: pip install 'tidegate[tokenizers]'"]) from error
        # The environment of transformers' apply_chat_template, which model cards are written against.
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = _now
        self._errors: tuple[type[Exception], ...] = (jinja2.TemplateError, TypeError, ValueError, KeyError)
        try:
            self._template = environment.from_string(text)
        except jinja2.TemplateError as error:
            raise ConfigError([f"the chat template does not compile: {error}"]) from error

    def render(self, fields: dict[str, Any]) -> str | None:
        """The prompt of a chat request; None when only the engine can tell what becomes of it."""
        messages = fields.get("messages")
        if not isinstance(messages, list) or not CHANGES_PROMPT.isdisjoint(fields):
            return None
        if not all(_is_plain(message) for message in messages):
            return None
        try:
            rendered: str = self._template.render(
                messages=messages, tools=None, documents=None, add_generation_prompt=True, **self._special_tokens
            )
        except self._errors:
            # Roles in an order that the template refuses, for example: the engine has its own words for it.
            return None
        return rendered


def read_template(folder: Path) -> ChatTemplate | None:
    """The template beside a tokenizer.json: chat_template.jinja, or in tokenizer_config.json; None: it has none.

    Raises ConfigError.
    """
    config = _read_config(folder / "tokenizer_config.json")
    separate = folder / "chat_template.jinja"
    text = separate.read_text(encoding="utf-8") if separate.is_file() else _default_of(config.get("chat_template"))
    if text is None:
        return None
    tokens = {name: content for name in SPECIAL_TOKENS if (content := _content(config.get(name))) is not None}
    return ChatTemplate(text, tokens)


def _read_config(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError([f"{file}: {error}"]) from error
    return found if isinstance(found, dict) else {}


def _default_of(template: object) -> str | None:
    """A text, or a list of named ones (model cards with one for tools)."""
    if isinstance(template, str):
        return template
    named = template if isinstance(template, list) else []
    return next((each["template"] for each in named if isinstance(each, dict) and each.get("name") == "default"), None)


def _content(token: object) -> str | None:
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _is_plain(message: object) -> bool:
    if not isinstance(message, dict) or not message.keys() <= PLAIN_MESSAGE:
        return False
    return isinstance(message.get("role"), str) and isinstance(message.get("content"), str)


def _to_json(value: object, indent: int | None = None) -> str:
    # Jinja's own escapes characters that mean something in HTML.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise ValueError(message)


def _now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)
