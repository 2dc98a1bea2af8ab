"""Grammars of lark as rules.

Lark reads the grammar, with all that its syntax has; the texts are those that its parser `earley` with the lexer
`dynamic_complete` accepts: terminals are regular expressions that may match anywhere, without a lexer in between.
"""

from __future__ import annotations

import re
from typing import Any

from mlc.models.constraints.expressions import EMPTY, Choice, Expression, Repeat, Rule, Sequence, Text
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import regular

Alternative = tuple[Expression, ...]

MOST_ALTERNATIVES = 10_000
_IMPORT = re.compile(r"%import[ \t]+common(\.\w+([ \t]*->[ \t]*\w+)?|[ \t]*\([\w, \t]*\))[ \t]*((//|#)[^\n]*)?\r?$",
                     re.MULTILINE)
"""The imports that read no file but lark's own grammar `common`."""
_ESCAPED_STRING = r'".*?(?<!\\)(\\\\)*?"'
"""The terminal ESCAPED_STRING of lark's grammar `common`: it looks at what is before, and can be said without that."""
_ESCAPED_STRING_PLAIN = r'"([^"\\\n]|\\[^\n])*"'


def grammar_rules(text: str, start: str = "start") -> tuple[dict[str, Expression], str]:
    """The rules of a grammar, and the one to begin with."""
    from lark import Lark
    from lark.exceptions import LarkError
    if not isinstance(text, str):
        raise unsupported(f"a grammar is {text!r}", "it is a text")
    if any(not _IMPORT.match(text, found.start()) for found in re.finditer("%import", text)):
        raise unsupported("a grammar imports another file", "write what it needs into the grammar; %import common.X "
                                                            "on a line of its own is supported")
    try:
        read = Lark(text, parser="earley", lexer="dynamic", start=start, maybe_placeholders=False)
    except (LarkError, re.error, AssertionError) as error:
        raise unsupported(f"lark does not take the grammar: {error}", "correct the grammar") from None
    except RecursionError:
        raise unsupported("a grammar is nested too deeply", "give parts of it names of their own") from None
    terminals = {t.name: _terminal(t.pattern) for t in read.terminals}
    used = {*read.ignore_tokens, *(str(s.name) for rule in read.rules for s in rule.expansion if s.is_term)}
    if missing := used - terminals.keys():
        raise unsupported(f"the terminal {min(missing)} is declared only", "say of which texts it consists")
    skipped = Repeat(Choice(tuple(terminals[name] for name in read.ignore_tokens)))
    rules: dict[str, list[Alternative]] = {}
    for rule in read.rules:
        parts: list[Expression] = []
        for symbol in rule.expansion:
            if symbol.is_term:
                parts += [skipped, terminals[symbol.name]] if read.ignore_tokens else [terminals[symbol.name]]
            else:
                parts.append(Rule(str(symbol.name)))
        rules.setdefault(str(rule.origin.name), []).append(tuple(parts))
    out: dict[str, Expression] = {name: Choice(tuple(map(Sequence, alternatives)))
                                  for name, alternatives in without_left_recursion(rules).items()}
    out["the whole text"] = Sequence((Rule(start), skipped if read.ignore_tokens else EMPTY))
    return out, "the whole text"


def _terminal(pattern: Any) -> Expression:
    flags = "".join(pattern.flags)
    if pattern.type == "str":
        return regular(re.escape(pattern.value), flags=flags) if "i" in flags else Text(pattern.value)
    return regular(pattern.value.replace(_ESCAPED_STRING, _ESCAPED_STRING_PLAIN), flags=flags)


def without_left_recursion(rules: dict[str, list[Alternative]]) -> dict[str, list[Alternative]]:
    """Rules of the same texts that do not begin with themselves, by Paull's algorithm: a = b | a c becomes b c*.

    Only rules that begin with each other are put into each other. A rule that begins with itself behind something that
    may be empty stays as it is; networks refuse it.
    """
    first = {name: {p[0].name for p in alternatives if p and isinstance(p[0], Rule)}
             for name, alternatives in rules.items()}
    reach = {name: _reachable(first, name) for name in rules}
    out: dict[str, list[Alternative]] = {}
    for name, alternatives in rules.items():
        inner = {other for other in out if other in reach[name] and name in reach[other]}
        work, done = list(alternatives), list[Alternative]()
        while work:
            alternative = work.pop(0)
            head = alternative[0] if alternative else None
            if isinstance(head, Rule) and head.name in inner:
                work = [(*own, *alternative[1:]) for own in out[head.name]] + work
            else:
                done.append(alternative)
            if len(work) + len(done) > MOST_ALTERNATIVES:
                raise unsupported(f"the rule {name} begins with too many others", "simplify the grammar")
        own = [a for a in done if a[:1] != (Rule(name),)]
        more = [a[1:] for a in done if a[:1] == (Rule(name),) and len(a) > 1]
        out[name] = [(*a, Repeat(Choice(tuple(map(Sequence, more))))) for a in own] if more else own
    return out


def _reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    seen, work = set[str](), list[str](edges.get(start, ()))
    while work:
        name = work.pop()
        if name not in seen:
            seen.add(name)
            work += edges.get(name, ())
    return seen

