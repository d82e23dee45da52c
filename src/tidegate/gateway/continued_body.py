"""The body that makes another replica go on with an answer, and the calls of which none can be made.

Two ways. *Text*: the answer so far stands at the end of the prompt, for a chat as the beginning of the assistant's
message, which llama.cpp adds to the rendered template as it is. *Exact*: prompt and answer are sent as the token ids
that the first replica told, so that nothing is rendered or tokenized a second time; vLLM tells them.

What is sent must mean what the first replica had before it. So a call is continued only if every field in it is known
to have no memory of what was generated; one that nobody has thought about is refused.
"""

from __future__ import annotations

import re
from array import array
from typing import Any

import msgspec
from msgspec import Raw

_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])

WITHOUT_MEMORY = frozenset(
    {
        *("model", "messages", "prompt", "stream", "stream_options", "stop", "stop_token_ids", "ignore_eos"),
        *("max_tokens", "max_completion_tokens", "n_predict", "min_tokens"),
        *("temperature", "top_p", "top_k", "min_p", "typical_p", "top_n_sigma", "seed", "logit_bias"),
        *("chat_template_kwargs", "reasoning_effort", "skip_special_tokens"),
        *("user", "metadata", "store", "service_tier", "priority", "safety_identifier"),
        *("cache_prompt", "prompt_cache_key"),
    }
)
"""Fields whose meaning does not depend on what was generated, or that are lowered by it."""

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "best_of": (1,),
    "continue_final_message": (False,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "functions": ([],),
    "include_stop_str_in_output": (False,),
    "logprobs": (False,),
    "n": (1,),
    "parallel_tool_calls": (True, False),
    "presence_penalty": (0,),
    "repeat_penalty": (1,),
    "repetition_penalty": (1,),
    "response_format": ({"type": "text"},),
    "return_token_ids": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "use_beam_search": (False,),
}
"""Values under which a field that would forbid it asks for nothing. Null always does."""

BOUNDS = ("max_tokens", "max_completion_tokens", "n_predict", "min_tokens")
"""Lowered by what is written."""

ONLY_IN_CHATS = frozenset(
    {
        *("messages", "max_completion_tokens", "logprobs", "top_logprobs", "response_format"),
        *("tools", "tool_choice", "functions", "parallel_tool_calls"),
        *("chat_template_kwargs", "reasoning_effort", "add_generation_prompt", "continue_final_message"),
    }
)
"""Not sent on when a chat goes on as a completion of token ids."""

_LIKE_A_SPECIAL_TOKEN = re.compile(r"<[|\uff5c]|[|\uff5c]>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]")
"""Written out, an engine takes them for the token itself."""


def objection(body: bytes, *, is_exact: bool) -> str:
    """Why a call must not be continued, by what it asks for; "" if it may. ``body``: a JSON object."""
    members = _object.decode(body)
    for name, raw in members.items():
        if name in NEUTRAL:
            if not _is_neutral(msgspec.json.decode(raw), NEUTRAL[name]):
                return f"it asks for {name}"
        elif name not in WITHOUT_MEMORY:
            return f"what {name} means to it is not known"
    if is_exact:
        return _objection_to_exactness(members)
    return _objection_to_text(members)


def _is_neutral(value: Any, neutral: tuple[Any, ...]) -> bool:
    # 0 equals False, and a completion whose logprobs are 0 does ask for some.
    return value is None or any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in neutral)


def _objection_to_exactness(members: dict[str, Raw]) -> str:
    if _value(members, "stop"):
        # vLLM holds back what may be the beginning of one, but tells its ids.
        return "it asks for stop strings"
    if _value(members, "seed") is not None and _value(members, "temperature") != 0:
        return "another replica draws other numbers from the same seed"
    return ""


def _objection_to_text(members: dict[str, Raw]) -> str:
    if "messages" not in members:
        return "" if isinstance(_value(members, "prompt"), str) else "its prompt is not one text"
    messages = _list.decode(members["messages"])
    last = msgspec.json.decode(messages[-1]) if messages else None
    if not isinstance(last, dict) or last.get("role") == "assistant":
        return "its last message is the assistant's own"
    return ""


def objection_to(text: str) -> str:
    """Why an answer that begins with ``text`` cannot go on from its text."""
    found = _LIKE_A_SPECIAL_TOKEN.search(text)
    return f"{found[0]} in its text would be read as a special token" if found is not None else ""


def tokens_left(body: bytes, written_tokens: int, most: int | None) -> int | None:
    """How many more the client allows. ``most``: of all together, where it set no bound; None: there is none."""
    bound = _bound(_object.decode(body), most)
    return None if bound is None else bound - written_tokens


def with_text(body: bytes, prompt: Raw, text: str, written_tokens: int, most: int | None) -> bytes:
    """``body``, with ``text`` written already. ``prompt``: the text of a completion as the client sent it."""
    members = _lowered(_object.decode(body), written_tokens, most)
    if "messages" in members:
        said = Raw(msgspec.json.encode({"role": "assistant", "content": text}))
        members["messages"] = Raw(msgspec.json.encode([*_list.decode(members["messages"]), said]))
    else:
        members["prompt"] = Raw(msgspec.json.encode(msgspec.json.decode(prompt, type=str) + text))
    return msgspec.json.encode(members)


def with_ids(body: bytes, prompt_ids: array[int], token_ids: array[int], most: int | None) -> bytes:
    """A completion of ``prompt_ids``, with ``token_ids`` written already."""
    members = _lowered(_object.decode(body), len(token_ids), most)
    kept = {name: raw for name, raw in members.items() if name not in ONLY_IN_CHATS}
    kept["prompt"] = Raw(msgspec.json.encode([*prompt_ids, *token_ids]))
    if _value(members, "max_completion_tokens") is not None:
        kept["max_tokens"] = members["max_completion_tokens"]
    return msgspec.json.encode(kept)


def _lowered(members: dict[str, Raw], written_tokens: int, most: int | None) -> dict[str, Raw]:
    bound = _bound(members, None)
    for name in BOUNDS:
        value = _value(members, name)
        if isinstance(value, int) and value >= 0:
            members[name] = Raw(b"%d" % max(0, value - written_tokens))
    if bound is None and most is not None:
        members["max_tokens"] = Raw(b"%d" % max(0, most - written_tokens))
    return members


def _bound(members: dict[str, Raw], most: int | None) -> int | None:
    named = [_value(members, name) for name in BOUNDS[:3]]
    return min((bound for bound in named if isinstance(bound, int) and bound >= 0), default=most)


def _value(members: dict[str, Raw], name: str) -> Any:
    raw = members.get(name)
    return None if raw is None else msgspec.json.decode(raw)
