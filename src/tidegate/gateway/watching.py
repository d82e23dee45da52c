"""Looks into answers while they pass: takes the text out, has it checked, says what is done about a finding.

A stream is looked at every 32 reads or every 250 ms, whichever comes first, and at ``[DONE]``; between two
looks only references to what was read are kept. A whole answer is looked at once. What counts as a problem is
``policy.output``; here is only where the text comes from.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.errors import ProtocolError
from tidegate.gateway.call import Call
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.answer_check import AnswerCheck, Expected
from tidegate.policy.output.garble import bad_characters
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Action, Finding
from tidegate.wire.deltas import ChoicePart, Deltas, Part, whole_part
from tidegate.wire.errors import OUTPUTS
from tidegate.wire.fields import Fields
from tidegate.wire.header_names import OUTPUT
from tidegate.wire.sse import error_event

READS = 32
INTERVAL_S = 0.25
LARGE_BYTES = 2048
"""A read that is larger is looked at once, so that at most 64 KiB are kept between two looks."""
SMALL_BYTES = 40
"""A read that is smaller is looked at once: it may be ``[DONE]``."""
MOST_BYTES = 64 * 1024
"""Of an event that is not complete; a longer one is not looked into."""

MOST_WHOLE = 64 * 1024
"""Characters of a whole answer that are looked at, the last ones: some 0.3 ms. Of JSON, all."""
PLAIN_CHARACTERS = 64
"""Too short for any loop: ``OutputConfig.loop_characters`` is at least as long."""
_BRACKET = ord("]")
_LAST = b"data: [DONE]"

# A look into an Enum class costs about a microsecond in Python 3.11.
_MARK, _STOP, _DEGRADE = Action.MARK, Action.STOP, Action.DEGRADE
_OK, _INVALID = Outcome.OK, Outcome.INVALID_OUTPUT


class Watch:
    """Of one stream, over all attempts that carry it on."""

    __slots__ = ("_check", "_deltas", "_due_at", "_is_done", "_is_told", "_reads", "_rest", "expected", "finding")

    def __init__(self, expected: Expected, now: float) -> None:
        self.expected = expected
        self._check = AnswerCheck(expected)
        self._deltas = Deltas()
        self._reads: list[bytes] = []
        self._rest = b""
        """Of an event that is not complete yet."""
        self._due_at = now + INTERVAL_S
        self._is_done = False
        self._is_told = False
        """The stream ended by itself, without ``[DONE]``, and an error was put there."""
        self.finding: Finding | None = None
        """The first problem; nothing more is looked at after it."""

    def take(self, data: bytes, now: float) -> bool:
        """Take one read. True: the answer must end here. Runs for every read of a stream that is watched."""
        if self.finding is not None:
            return False
        reads = self._reads
        reads.append(data)
        size = len(data)
        # The byte before the empty line tells [DONE] behind another event in one read.
        if len(reads) < READS and now < self._due_at and SMALL_BYTES < size < LARGE_BYTES and data[-3] != _BRACKET:
            return False
        self._due_at = now + INTERVAL_S
        self._look()
        if self._is_done:
            self.end()
        else:
            self.finding = self._check.finding
        return self.finding is not None and self.action is _STOP

    def resume(self) -> None:
        """Another attempt goes on with the answer: an event that the last one did not complete never will be."""
        if self.finding is None:
            self._look()
            self._rest = b""

    def end(self) -> Finding | None:
        """The stream is over, if ``take`` has not seen that already."""
        if self.finding is None:
            self._look()
            self.finding = self._check.end(is_done=self._is_done)
        return self.finding

    @property
    def is_stopped(self) -> bool:
        """The answer ended, or ends, with an error of ours."""
        return self.finding is not None and self.action is _STOP and not self._is_told

    @property
    def outcome(self) -> Outcome:
        """How the attempt counts that came to its regular end."""
        finding = self.finding
        if finding is None:
            return _OK
        return _INVALID if self._is_told else outcome_on(finding, self.expected.config)

    @property
    def code(self) -> str:
        """Of the error that ``trailer`` told; "" for none."""
        return self.finding.problem.value if self._is_told and self.finding is not None else ""

    def trailer(self) -> bytes:
        """Part of ``relay.Watcher``."""
        finding = self.end()
        if finding is None:
            return b""
        code, config = finding.problem.value, self.expected.config
        if self.action is _STOP and not self._is_done:
            self._is_told = True
            return error_event(OUTPUTS[finding.problem].body(code, finding.evidence))
        return b": %b: %b\n\n" % (OUTPUT, code.encode()) if config.comments else b""

    @property
    def action(self) -> Action:
        """What is done about the finding, now that the client has seen a part of the stream."""
        finding = self.finding
        action = _MARK if finding is None else action_on(finding, self.expected.config)
        return _STOP if action is _STOP or action is _DEGRADE else _MARK

    def _look(self) -> None:
        data = self._rest + b"".join(self._reads)
        self._reads = []
        if data.rfind(_LAST, -len(_LAST) - 4) >= 0:
            self._is_done = True
        at = len(data) if data.endswith(b"\n\n") else max(data.rfind(b"\n\n") + 2, data.rfind(b"\n\r\n") + 3)
        if at < 4:
            at = 0
        self._rest = data[at:] if len(data) - at <= MOST_BYTES else b""
        if not at:
            return
        try:
            found = self._deltas.read(data[:at])
        except ProtocolError:
            self._check.unreadable()
            return
        if isinstance(found, str):
            self._check.text(0, found)
        else:
            _feed(self._check, found)


def action_on(finding: Finding, config: OutputConfig) -> Action:
    """What is done about an answer of which the client has seen nothing."""
    return _MARK if finding.is_bound else config.action(finding.problem)


def outcome_on(finding: Finding, config: OutputConfig) -> Outcome:
    """How the attempt counts whose answer the client got all the same."""
    return _INVALID if finding.problem in config.faults and not finding.is_bound else _OK


def _feed(check: AnswerCheck, parts: list[Part]) -> None:
    """The text of one choice at a time: most streams have but one."""
    texts: list[str] = []
    index = 0
    for part in parts:
        for choice in part.choices or ():
            said = choice.delta if choice.message is None else choice.message
            text = choice.text if said is None else said.content
            if choice.index != index:
                check.text(index, "".join(texts))
                texts, index = [], choice.index
            if text:
                texts.append(text)
            elif said is not None and (said.tool_calls or said.refusal or said.function_call):
                check.choice(index).has_other = True
            if choice.finish_reason is not None:
                check.choice(index).reason = choice.finish_reason
    if texts:
        check.text(index, "".join(texts))


def whole_finding(expected: Expected, body: bytes) -> Finding | None:
    """What is wrong with a whole answer, if anything. What has another shape is not judged."""
    try:
        part = whole_part(body)
    except ProtocolError:
        check = AnswerCheck(expected)
        check.unreadable()
        return check.finding
    if part is None:
        return None
    choices = part.choices or ()
    if len(choices) == 1 and not expected.is_json and _is_plain(choices[0]):
        return None
    check = AnswerCheck(expected)
    for choice in choices:
        check.choice(choice.index)
        if len(body) > MOST_WHOLE and not expected.is_json:
            _keep_tail(choice)
    _feed(check, [part])
    return check.end(is_done=True)


def _keep_tail(choice: ChoicePart) -> None:
    said = choice.delta if choice.message is None else choice.message
    if said is not None and said.content is not None:
        said.content = said.content[-MOST_WHOLE:]
    elif choice.text is not None:
        choice.text = choice.text[-MOST_WHOLE:]


def _is_plain(choice: ChoicePart) -> bool:
    """Short readable text that ended by itself: nothing to look into, which most answers are."""
    said = choice.delta if choice.message is None else choice.message
    text = choice.text if said is None else said.content
    return (
        text is not None
        and len(text) < PLAIN_CHARACTERS
        and choice.finish_reason == "stop"
        and text.isascii()
        and not bad_characters(text)
        and bool(text.strip())
    )


class Outputs:
    """Which answers are looked into, and for what: ``named`` by upstream, ``usual`` for all others."""

    def __init__(self, usual: OutputConfig, named: dict[str, OutputConfig]) -> None:
        self._usual = Expected(config=usual, is_json=usual.wants_json)
        self._named = {name: Expected(config=each, is_json=each.wants_json) for name, each in named.items()}

    def expected(self, upstream: str, call: Call) -> Expected | None:
        """What the answer to ``call`` should be; None: it is not looked into."""
        usual = self._named.get(upstream, self._usual)
        if not usual.config.enabled or call.body is None or not call.route.generates:
            return None
        return expected_of(usual, call.body.fields)

    def watch(self, upstream: str, call: Call, now: float) -> Watch | None:
        """For the stream that answers ``call``; None: it is not looked into."""
        expected = self.expected(upstream, call)
        if expected is None or not (expected.config.streams or expected.is_json):
            return None
        return Watch(expected, now)

    def guard(self, upstream: str, call: Call, now: float) -> Watch | None:
        """For a whole answer that comes as a stream: it can be ended before it is whole. None: nothing would end it."""
        expected = self.expected(upstream, call)
        return None if expected is None or not _may_end(expected) else Watch(expected, now)


def _may_end(expected: Expected) -> bool:
    config = expected.config
    actions = (config.repetitive, config.garbled, config.format if expected.is_json else _MARK)
    return any(action is _STOP or action is _DEGRADE for action in actions)


def expected_of(usual: Expected, fields: Fields) -> Expected:
    """``usual``, with what the request asks for itself."""
    form, guided = bytes(fields.response_format), bytes(fields.guided_json) or bytes(fields.structured_outputs)
    may_be_empty = fields.max_tokens == 0 or _is_set(bytes(fields.stop)) or _is_set(bytes(fields.suffix))
    if not may_be_empty and not form and not guided:
        return usual
    is_json, schema = _form(form, bytes(fields.guided_json), bytes(fields.structured_outputs))
    return Expected(config=usual.config, is_json=is_json or usual.is_json, schema=schema, may_be_empty=may_be_empty)


def _form(response_format: bytes, guided_json: bytes, structured: bytes) -> tuple[bool, Any]:
    """Whether JSON is asked for, and its schema."""
    form = _decoded(response_format)
    if isinstance(form, dict) and form.get("type") in ("json_object", "json_schema"):
        inner = form.get("json_schema")
        # OpenAI and vLLM: {"json_schema": {"schema": ...}}; llama.cpp also: {"schema": ...}.
        return True, (inner.get("schema") if isinstance(inner, dict) else form.get("schema"))
    outputs = _decoded(structured)
    schema = outputs.get("json") if isinstance(outputs, dict) else _decoded(guided_json)
    if isinstance(schema, str):
        schema = _decoded(schema.encode())
    return schema is not None, schema


def _is_set(raw: bytes) -> bool:
    return raw not in (b"", b"null", b"[]", b'""')


def _decoded(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
