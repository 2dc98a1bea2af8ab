"""The messages and tools of a request for a chat, and the calls of tools in an answer."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from mlc.models.constraints import Constraint
from mlc.models.language_model import LanguageModel
from mlc.tools.serve.errors import ApiError, wrong
from mlc.tools.serve.fields import Fields

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_MESSAGES, MOST_TOOLS = 2048, 128
_MARKED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
"""The form in which the models of Qwen, Hermes and others write the calls of tools."""


@dataclass
class Conversation:
    """The messages of a request, and the tools that an answer may call.

    messages    for the template
    tools       for the template
    constraint  if a tool has to be called
    several     whether an answer may call more than one
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    constraint: Constraint | None = None
    several: bool = True

    def tokens(self, model: LanguageModel) -> list[int]:
        """The tokens of the prompt."""
        if not self.tools:
            return model.chat_tokens(self.messages)
        if model.template is None or not model.template.takes_tools:
            raise ApiError(400, "the model's template of conversations has no tools", "tools")
        return model.chat_tokens(self.messages, tools=self.tools)

    def calls(self, text: str) -> tuple[str, list[dict[str, Any]]]:
        """The text of an answer without calls of tools, and the calls: marked ones, or a text that is nothing else."""
        if not self.tools:
            return text, []
        found = _MARKED.findall(text)
        sources = found or [text.strip()]
        calls = [call for source in sources if (call := self._call(source)) is not None]
        if len(calls) < len(sources):
            return text, []
        return _MARKED.sub("", text).strip() if found else "", calls if self.several else calls[:1]

    def _call(self, text: str) -> dict[str, Any] | None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        names = {t["function"]["name"] for t in self.tools}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or value["name"] not in names:
            return None
        arguments = value.get("arguments", value.get("parameters", {}))
        return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": {
            "name": value["name"], "arguments": json.dumps(arguments)}}     # half of a surrogate pair is no UTF-8


def read_conversation(fields: Fields) -> Conversation:
    """The messages and tools of a request."""
    found = fields.list("messages", MOST_MESSAGES)
    if not found:
        raise wrong("messages", "messages is missing or empty")
    messages = [_message(Fields(m, f"messages.{i}")) for i, m in enumerate(found)]
    tools = [_tool(Fields(t, f"tools.{i}")) for i, t in enumerate(fields.list("tools", MOST_TOOLS))]
    several = fields.flag("parallel_tool_calls", True)
    choice = fields.any("tool_choice")
    if choice is None or choice == "auto":
        return Conversation(messages, tools, several=several)
    if choice == "none":
        return Conversation(messages)
    if not tools:
        raise wrong("tool_choice", "tool_choice goes with tools")
    named = tools
    if choice != "required":
        inner = Fields(choice, "tool_choice")
        inner.one_of("type", "function")
        function = inner.inner("function")
        name = function.text("name")
        function.check_all_read()
        inner.check_all_read()
        named = [t for t in tools if t["function"]["name"] == name]
        if not named:
            raise wrong("tool_choice", f"tool_choice names {name[:60]!r}, which is none of the tools")
    return Conversation(messages, tools, Constraint.json_schema({"anyOf": [_call_schema(t) for t in named]}))


def _call_schema(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {"type": "object", "required": ["name", "arguments"], "additionalProperties": False, "properties": {
        "name": {"const": function["name"]}, "arguments": function.get("parameters") or {"type": "object"}}}


def _tool(fields: Fields) -> dict[str, Any]:
    fields.one_of("type", "function")
    inner = fields.inner("function")
    inner.text("name")
    inner.text("description", "")
    inner.flag("strict")
    if inner.any("parameters") is not None:
        inner.inner("parameters")
    inner.check_all_read()
    fields.check_all_read()
    return dict(fields.values)


def _message(fields: Fields) -> dict[str, Any]:
    role = fields.text("role")
    if role not in ROLES:
        raise wrong(fields.path("role"), f"{fields.path('role')} is {role[:40]!r}, and may be {', '.join(ROLES)}")
    out: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": _content(fields)}
    if fields.has("name"):
        out["name"] = fields.text("name")
    if role == "tool":
        out["tool_call_id"] = fields.text("tool_call_id")
    if role == "assistant":
        fields.refuse({"audio": "answers are texts", "function_call": "use tool_calls", "refusal": "it is no content"})
        if calls := fields.list("tool_calls", MOST_TOOLS):
            out["tool_calls"] = [_said_call(Fields(c, f"{fields.path('tool_calls')}.{i}")) for i, c in enumerate(calls)]
    fields.check_all_read()
    if out["content"] == "" and "tool_calls" not in out and fields.values.get("content") is None:
        raise wrong(fields.path("content"), f"{fields.path('content')} is missing")
    return out


def _content(fields: Fields) -> str:
    value = fields.any("content")
    if value is None or isinstance(value, str):
        return value or ""
    texts = []
    if not value:
        raise wrong(fields.path("content"), f"{fields.path('content')} is neither a text nor a list of parts")
    for i, part in enumerate(fields.list("content", 256)):
        inner = Fields(part, f"{fields.path('content')}.{i}")
        kind = inner.text("type")
        if kind != "text":
            raise wrong(inner.path("type"), f"{inner.path('type')} is {kind[:40]!r}, and only texts are supported")
        texts.append(inner.text("text"))
        inner.check_all_read()
    return "".join(texts)


def _said_call(fields: Fields) -> dict[str, Any]:
    """A call of an earlier answer; templates take the arguments as an object."""
    fields.one_of("type", "function")
    inner = fields.inner("function")
    out = {"id": fields.text("id"), "type": "function", "function": {"name": inner.text("name"),
                                                                     "arguments": inner.text("arguments")}}
    try:
        out["function"]["arguments"] = json.loads(out["function"]["arguments"])  # type: ignore[index]
    except (ValueError, RecursionError):
        raise wrong(inner.path("arguments"), f"{inner.path('arguments')} is no JSON") from None
    inner.check_all_read()
    fields.check_all_read()
    return out
