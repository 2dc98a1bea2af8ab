"""Messages for a line that the grammar rejects: the text found, the alternatives expected, the likely intent."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = {
    "COLON": "':'", "_ASSIGN": "'='", "_RPAR": "')'", "_RSQB": "']'", "COMMA": "','", "LPAR": "'('", "LSQB": "'['",
    "_ARROW": "'->'", "_IN": "in", "_FOR": "for", "ELSE": "else", "_IMPORT": "import", "_AS": "as", "_MAPS": "'=>'",
    "_TILDE": "'~'", "$END": "the end of the line",
}
_OPERATORS = frozenset({"SIGN", "TIMES", "POWER", "COMPARE", "AND", "OR", "IF", "RANGE", "PRIME", "_DOT", "UPDATE",
                        "_MAPS"})
_FOREIGN = {
    "lambda": "write x => value", "class": "write model Name(sizes):", "fn": "write def", "func": "write def",
    "function": "write def", "let": "leave it out: name = value", "var": "leave it out: name = value",
    "const": "leave it out: name = value", "param": "leave it out: name: type = value", "pass": "leave the block out",
    "break": "end the loop by the condition of a while", "continue": "use if", "elseif": "write elif",
    "layer": "leave it out: name = Layer(...)", "try": "there are no exceptions", "with": "there is none",
    "global": "functions see the names of the file", "is": "write ==", "True": "write true", "False": "write false",
    "None": "write none",
}
_SIGNS = {"^": "the power is **", "&": "write and", "|": "write or", "!": "write not", "'": 'texts stand in "..."',
          "{": "there are no braces: a block is indented, a group stands in ( )", ";": "one statement stands on a line",
          "@": "there are no decorators", "$": "remove it", "?": "write a if condition else b", "`": "remove it",
          "−": "write - (this is another sign)", "×": "write *", "·": "write *", "÷": "write /", "≤": "write <=",
          "≥": "write >=", "≠": "write !=", "→": "write ->", "“": 'write "', "”": 'write "', "\\": "lines go on within "
          "brackets"}


def described(text: str, offset: int, found: str, expected: Iterable[str]) -> tuple[str, str | None]:
    """(message, suggestion) for a line that goes wrong at `offset`."""
    wanted = set(expected)
    word = re.match(r"\w+", text[offset:])
    shown = f"'{word[0] if word else found}'" if found else "the end of the line"
    if not wanted:
        return f"{shown} does not belong here", _hint(text, offset, found, wanted)
    return f"expected {_listed(wanted, text, offset)}, found {shown}", _hint(text, offset, found, wanted)


def _listed(wanted: set[str], text: str, offset: int) -> str:
    """Alternatives expected at this position, in the language's own terms."""
    out = []
    if {"NUMBER", "NAME"} <= wanted:
        out.append("a statement" if not text[:offset].strip() else "an expression")
        wanted = wanted & {"_RPAR", "_RSQB"}
    elif "LIKE" in wanted:
        out.append("a type")
        wanted = wanted - {"NAME", "LPAR", "LIKE"}
    elif "NAME" in wanted:
        out.append("a name")
    elif "STRING" in wanted:
        out.append('a text in "..."')
    if len(wanted & _OPERATORS) > 3:
        out.append("an operator")
        wanted = wanted - _OPERATORS - {"LPAR", "LSQB"}
    out += [_WORDS[name] for name in _WORDS if name in wanted]
    return out[0] if len(out) == 1 else ", ".join(out[:-1]) + " or " + out[-1]


def _hint(text: str, offset: int, found: str, wanted: set[str]) -> str | None:
    first = re.match(r"\w+", text)
    opening = first[0] if first else ""
    word = re.match(r"\w+", text[offset:])
    before = re.search(r"(\w+)\s*$", text[:offset])
    for candidate in (word, before):
        if candidate and (hint := _FOREIGN.get(candidate[0].strip())):
            return hint
    if opening in _FOREIGN:
        return _FOREIGN[opening]
    if found[:1] in _SIGNS and not (found == "@" and offset):
        return _SIGNS[found[:1]]
    if found == "=" and opening in ("if", "elif", "while", "assert"):
        return "write == to compare"
    if not found and "COLON" in wanted:
        return "end the line with ':', the block follows"
    if opening == "def" and not found and not {"NUMBER", "NAME"} <= wanted:
        return "write def name(x: type) -> type = result, or : and a block"
    if not found and {"NUMBER", "NAME"} <= wanted:
        return "write what is missing at the end of the line"
    if word and before and "COMMA" in wanted:
        return "is a comma or an operator missing?"
    if word and before:
        return "is an operator missing, or a line end?"
    return "remove it, or write what is expected before it"
