"""Lexers of Pygments for the two languages of the pages: MLIR's text and the text language."""

from __future__ import annotations

from importlib.resources import files
from re import findall
from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

GRAMMAR = (files("mlc.frontend.language") / "grammar.lark").read_text("utf-8")
KEYWORDS = tuple(sorted(set(findall(r'"([a-z]{2,})"', GRAMMAR))))
"""The words that the grammar has in quotes."""


class MlirLexer(RegexLexer):
    """MLIR's textual form, at any level."""

    name = "MLIR"
    aliases: ClassVar = ["mlir"]
    tokens: ClassVar = {"root": [
        (r"//[^\n]*", Comment.Single),
        (r'"(?:[^"\\]|\\.)*"', String),
        (r"%[\w$.#-]+", Name.Variable),
        (r"@[\w$.-]+", Name.Function),
        (r"\^\w+", Name.Label),
        (r"[!#][\w.]+", Keyword.Type),
        (r"\b(?:tensor|memref|vector|tuple|index|none|i\d+|u?i\d+|b?f\d+)\b", Keyword.Type),
        (r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?", Number),
        (r"[a-zA-Z_]\w*(?:\.\w+)+", Name.Builtin),
        (r"[a-zA-Z_]\w*(?=\s*=)", Name.Attribute),
        (r"[a-zA-Z_]\w*", Text),
        (r"->|[=:+*-]", Operator),
        (r"[()\[\]{}<>,?]", Punctuation),
        (r"\s+|.", Text),
    ]}


class MlcLexer(RegexLexer):
    """The text language, whose keywords are those of its grammar."""

    name = "mlc"
    aliases: ClassVar = ["mlc"]
    tokens: ClassVar = {"root": [
        (r'"""(?:.|\n)*?"""', String.Doc),
        (r"#[^\n]*", Comment.Single),
        (r'"[^"\n]*"', String),
        (r"\b(?:def|model)\b", Keyword, "defined"),
        (words(KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
        (r"\b(?:bool|u?i\d+|b?f\d+|c\d+)\b", Keyword.Type),
        (r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", Number),
        (r"[a-zA-Z_]\w*", Name),
        (r"->|=>|<-|\.\.|[-+*/@=<>~^'!%]+", Operator),
        (r"\s+|.", Text),
    ], "defined": [(r"\s+", Text), (r"\w+", Name.Function, "#pop"), (r".", Text, "#pop")]}
