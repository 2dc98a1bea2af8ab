"""The layout of IR, as the printer has it, with the line breaks and comments of the text.

Operations are indented by two spaces for each region around them, labels of blocks as the operation that has them,
and what continues an operation by as much more as it was, at least four. Texts that break lines at the same places have
the same layout, but for what stands between < and >, and spaces before a colon within parentheses that are no arguments
of a function or block: these are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlc.ir.diag import InternalError
from mlc.ir.lexer import Token
from mlc.tools.language_server.ir_reader import Found, read

_GAP = re.compile(r"(?P<comment>//[^\n]*)|(?P<resources>\{-#[\s\S]*?#-\})|(?P<newline>\n)|[^\S\n]+")
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass
class _Line:
    """A line of the text.

    pieces  its tokens; a type or an attribute in < and > is one piece with the word before it
    depth   the braces around its first token
    """

    pieces: list[Token] = field(default_factory=list)
    comment: str = ""
    space: str = ""                                        # before the comment
    depth: int = 0
    begins: bool = False                                   # an operation or a block
    label: bool = False
    blank: bool = False                                    # an empty line is above
    further: int = 0                                       # of a line within an operation: how far in it is


def formatted(text: str, file: str = "<text>") -> str:
    """The text in its layout; the first error if it is not IR.

    Raises ParseError or IRError as the parser does.
    """
    found = read(text, file)
    if found.errors:
        raise found.errors[0]
    out = "".join(line + "\n" for line in _laid_out(_lines(text, found)))
    again = read(out, file)
    if again.errors or [(t.kind, t.text) for t in again.tokens] != [(t.kind, t.text) for t in found.tokens] or (
            _comments(out, again.tokens) != _comments(text, found.tokens)):
        raise InternalError("the layout of the text changes its meaning", hint="report it, with the file")
    return out


def _comments(text: str, tokens: Sequence[Token]) -> list[str]:
    return [m[0].strip() for gap, _ in _gaps(text, tokens) for m in _GAP.finditer(gap)
            if m["comment"] or m["resources"]]


def _gaps(text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, Token]]:
    """Each token, and what stands between it and the one before."""
    end = 0
    for token in tokens:
        yield text[end:token.start], token
        end = token.start + len(token.text)


def _joined(text: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with what stands in < and > as one that is left as it is."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text != "<" or token.kind != "punct":
            out.append(token)
            at += 1
            continue
        depth, last = 0, at
        while last < len(tokens) - 1:
            depth += (tokens[last].text == "<") - (tokens[last].text == ">")
            if depth == 0:
                break
            last += 1
        end = tokens[last].start + len(tokens[last].text)
        before = out[-1] if out and not text[out[-1].start + len(out[-1].text):token.start] else None
        if before is not None and before.kind in ("word", "hash", "dtype"):
            out[-1] = Token("type", text[before.start:end], before.start)
        else:
            out.append(Token("type", text[token.start:end], token.start))
        at = last + 1
    return out


def _lines(text: str, found: Found) -> list[_Line]:
    begins = {found.tokens[p.first].start for p in found.places}
    lines, line, depth, column, of_operation = list[_Line](), _Line(), 0, 0, 0
    newlines = 1
    for gap, token in _gaps(text, _joined(text, found.tokens)):
        for m in _GAP.finditer(gap):
            if m["newline"]:
                newlines += 1
                if line.pieces or line.comment:
                    lines.append(line)
                    line, newlines = _Line(depth=depth), 1
            elif m["comment"] or m["resources"]:
                line.space = gap[:m.start()].rpartition("\n")[2]
                line.comment = m[0].rstrip()
                line.blank = line.blank or (newlines > 1 and not line.pieces)
                if not line.pieces:
                    line.depth = depth
                if newlines and not line.pieces:
                    newlines = 0
        if token.kind == "end":
            break
        if line.comment and line.pieces == []:             # resources, with a token on the line of their end
            lines.append(line)
            line = _Line(depth=depth)
        if not line.pieces:
            line.depth, line.blank = depth - (token.text == "}"), newlines > 1
            line.begins = token.start in begins or token.kind == "block" or token.text == "}"
            line.label = token.kind == "block"
            here = token.start - text.rfind("\n", 0, token.start) - 1
            if line.begins:
                column, of_operation = here, line.depth
            else:
                line.further, line.depth = here - column, of_operation
            newlines = 0
        line.pieces.append(token)
        if token.kind == "punct":
            depth += (token.text == "{") - (token.text == "}")
    if line.pieces or line.comment:
        lines.append(line)
    return lines


def _laid_out(lines: Sequence[_Line]) -> Iterator[str]:
    round_depth, previous = 0, None
    for i, line in enumerate(lines):
        if not line.pieces:
            following = next((x for x in lines[i + 1:] if x.pieces), None)
            depth = line.depth if following is None or following.pieces[0].text == "}" else _indent(following) // 2
            own = " " * (2 * depth if line.space or not depth else 0) + line.comment
        else:
            text, round_depth = _spaced(line, 0 if line.begins else round_depth)
            own = " " * _indent(line) + text
            if line.comment:
                own += (line.space if len(line.space) > 1 else "  ") + line.comment
        opened = previous is not None and previous.pieces and previous.pieces[-1].text == "{"
        closes = bool(line.pieces) and line.pieces[0].text == "}"
        if line.blank and previous is not None and not opened and not closes:
            yield ""
        yield own
        previous = line


def _indent(line: _Line) -> int:
    return 2 * max(line.depth - line.label, 0) + (0 if line.begins else max(line.further, 4))


def _spaced(line: _Line, round_depth: int) -> tuple[str, int]:
    """The tokens of a line with their spaces, and how many parentheses and brackets are open after it."""
    out, before, earlier = "", None, None
    braces = list[str]()                                   # the spaces within those that are open
    defines = line.begins and (line.label or line.pieces[0].text.endswith("func"))     # its arguments, as %x: f32
    results = line.begins and line.pieces[0].kind == "value"           # until the equals sign
    for i, token in enumerate(line.pieces):
        if before is not None:
            here = " " if before.start + len(before.text) < token.start else ""
            if defines and token.text == ":" and before.kind == "value":
                here = ""
            tail = i == len(line.pieces) - 1
            if before.text == "{":
                braces.append(_within(line.pieces[i:i + 2]))
            inside = braces.pop() if token.text == "}" and braces else braces[-1] if before.text == "{" else None
            out += inside if inside is not None else "" if results and ":" in (before.text, token.text) else _between(
                earlier, before, token, here, round_depth, line.label and tail)
        out += token.text
        if token.kind == "punct":
            round_depth += (token.text in "([") - (token.text in ")]")
        results = results and token.text != "="
        earlier, before = before, token
    return out, round_depth


def _within(following: Sequence[Token]) -> str:
    """The space within braces before these tokens: none around attributes, one around operations of a region."""
    first, second = following[0], following[1] if len(following) > 1 else None
    return "" if first.text == "}" or (
        first.kind in ("word", "string") and second is not None and second.text in ("=", ",", "}")) else " "


def _between(earlier: Token | None, a: Token, b: Token, here: str, depth: int, ends_label: bool) -> str:
    """The space between two tokens; `here` is that of the text."""
    if a.text in ("(", "[") or b.text in (")", "]", ",") or ends_label:
        return ""
    if a.text == "," or "->" in (a.text, b.text) or "=" in (a.text, b.text):
        return " "
    if b.text == ":":
        return here if depth or a.kind == "word" else " "
    if b.text == "{":
        return " "
    if a.kind == "symbol" and b.text == "(":
        return ""
    if b.kind == "word" and (a.kind == "type" or a.text == ")"):
        return " "
    if a.text == ":":
        return here if depth and (earlier is None or earlier.kind != "value") else " "
    return here
