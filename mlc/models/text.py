"""Text to tokens and back, by the `tokenizer.json` of a model, and the templates of its conversations."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.folder import read_json

Message = Mapping[str, Any]
"""A part of a conversation: `role` ("system", "user" or "assistant") and `content`."""


def missing_package(name: str, what: str) -> UserError:
    return UserError(f"the package {name}, which {what}, is not installed", code="MLC0917", loc=user_loc(),
                     hint="pip install 'mlc[lm,gguf]'")


def unreadable_tokenizer(origin: str, why: str) -> UserError:
    return UserError(f"{origin} is no tokenizer: {why}", code="MLC0913", loc=user_loc())


class Tokenizer:
    """A tokenizer of the package tokenizers.

    rules  its `tokenizers.Tokenizer`
    """

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    @classmethod
    def of_file(cls, path: Path) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`.

        Raises:
            UserError: The file is missing or no tokenizer (MLC0913), or the package is not installed (MLC0917).
        """
        try:
            from tokenizers import Tokenizer as Read
        except ImportError:
            raise missing_package("tokenizers", "reads tokenizer.json") from None
        if not path.is_file():
            raise UserError(f"{path} does not exist", code="MLC0913", loc=user_loc(),
                            hint="without a tokenizer, pass prompts as numbers of tokens")
        try:
            rules = Read.from_file(str(path))
        except Exception as error:                         # it raises Exception itself
            raise unreadable_tokenizer(str(path), str(error)) from None
        rules.no_padding()                                 # a file may keep how a batch was once padded and cut
        rules.no_truncation()
        return cls(rules)

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The tokens of a text; with `special`, with those that begin and end one, as the tokenizer has it."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(f"a text has {text[error.start]!r} at {error.start}, which is no character", code="MLC0915",
                            loc=user_loc(), hint="it is half of a pair: read the text as UTF-8") from None
        out: list[int] = self.rules.encode(text, add_special_tokens=special).ids
        return out

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        out: str = self.rules.decode(list(tokens), skip_special_tokens=True)
        return out


class Unfolding:
    """The text of tokens that come one by one: each gives the text that is certain then.

    A character may consist of several tokens, and a token may be written differently at the start of a text; so the
    text of a few tokens is decoded together, and what it adds to that of those before is new.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokens: list[int] = []
        self.begin = self.known = 0                        # of what is decoded together, and of what is not given yet

    def add(self, token: int) -> str:
        self.tokens.append(token)
        before = self.tokenizer.decode(self.tokens[self.begin: self.known])
        now = self.tokenizer.decode(self.tokens[self.begin:])
        if len(now) <= len(before) or now.endswith("\ufffd"):
            return ""
        self.begin, self.known = self.known, len(self.tokens)
        return now[len(before):]

    def rest(self) -> str:
        """The text that is left at the end: an incomplete character, too."""
        before = self.tokenizer.decode(self.tokens[self.begin: self.known])
        return self.tokenizer.decode(self.tokens[self.begin:])[len(before):]


class ChatTemplate:
    """The form in which a model was trained on conversations: a template of jinja2, run in its sandbox.

    source     the template
    special    the texts of special tokens by the names that templates use, such as `bos_token`
    for_tools  the template of conversations with tools, if it is another one
    """

    def __init__(self, source: str, special: Mapping[str, str], origin: str,
                 for_tools: ChatTemplate | None = None) -> None:
        try:
            import jinja2
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise missing_package("jinja2", "runs the templates of conversations") from None
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[
            "jinja2.ext.loopcontrols", "mlc.models.generation_tag.GenerationTag"])
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refused
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        self.source, self.origin, self.special, self.for_tools = source, origin, dict(special), for_tools
        try:
            self.template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise UserError(f"{origin}: the template of conversations is wrong: {error}", code="MLC0914",
                            loc=user_loc()) from None

    @property
    def takes_tools(self) -> bool:
        """Whether the text of a conversation may say which tools there are."""
        return self.for_tools is not None or re.search(r"\btools\b", self.source) is not None

    def text(self, messages: Sequence[Message], **more: Any) -> str:
        """The text of a conversation, up to where the model goes on."""
        import jinja2
        if self.for_tools is not None and more.get("tools") is not None:
            return self.for_tools.text(messages, **more)
        try:
            return self.template.render(messages=[dict(m) for m in messages], add_generation_prompt=True,
                                        **self.special, **more)
        except (jinja2.TemplateError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise UserError(f"{self.origin}: the template does not take this conversation: {error}", code="MLC0914",
                            loc=user_loc(), hint="roles are mostly: a system message, then user and assistant in "
                                                 "turns") from None


def read_template(folder: Path) -> ChatTemplate | None:
    """The template of a folder: of `chat_template.jinja`, or of `tokenizer_config.json`; None if it has none.

    One for tools may be beside it: `additional_chat_templates/tool_use.jinja`, or the one named `tool_use`.
    """
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.exists() else {}
    special = {name: text for name in ("bos_token", "eos_token", "unk_token", "pad_token")
               if (text := _text_of(settings.get(name))) is not None}
    file, file_for_tools = folder / "chat_template.jinja", folder / "additional_chat_templates" / "tool_use.jinja"
    for_tools = None
    if file_for_tools.is_file():
        for_tools = ChatTemplate(file_for_tools.read_text(encoding="utf-8"), special, str(file_for_tools))
    if file.is_file():
        return ChatTemplate(file.read_text(encoding="utf-8"), special, str(file), for_tools)
    source = settings.get("chat_template")
    if isinstance(source, list):                           # several by name
        named = {x.get("name"): x.get("template") for x in source if isinstance(x, dict)}
        source, of_tools = named.get("default", next(iter(named.values()), None)), named.get("tool_use")
        if isinstance(of_tools, str):
            for_tools = ChatTemplate(of_tools, special, str(path))
    return ChatTemplate(source, special, str(path), for_tools) if isinstance(source, str) else None


def _text_of(token: Any) -> str | None:
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None,
             separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refused(message: str) -> None:
    raise ValueError(message)
