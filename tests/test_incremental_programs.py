"""Programs in an editor: an edit within a function is checked as if all were read anew, at a fraction of the work."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mlc.frontend.language import statements as evaluation
from mlc.frontend.language import syntax as S
from mlc.tools.language_server.nodes import inside
from mlc.tools.language_server.program_reader import Memory, Reading, read

HEAD = '''def twice(x: f32[N, 4]) = x * 2

def f(x: f32[N, 4], w: f32[4, 4], b: f32[4]):
    h = x
    n = 3
'''
LINES = ("h = relu(h @ w + b)", "h = h * n", "n = n + 1", "h = twice(h)", "k = h.T", "k, l = h, h[:, 0]",
         "l = sum(h, axis=1)", "h = h + nope", "h = (", "h = h.T", "h = h @ b", "if n > 4:\n        h = h - 1",
         "for i in 0..3:\n        h = h + b", "h: f32[N, 4] = h * 0.5", "h += b", "g = y => y + b\n    h = g(h)",
         "h = h * sum(w)", "n = h", "h = zeros(N, 4)")


def program(lines: list[str], head: str = HEAD) -> str:
    return head + "".join(f"    {line}\n" for line in lines) + "    return h\n"


def described(found: Reading) -> Any:
    """The errors of a reading with their places, and the values of its expressions in the order of the text."""
    values = [(x.at, type(x).__name__, known and known.text) for definition in found.file.tree.body
              for x in inside(definition) for known in [found.known.get(id(x))]]
    return [(str(e.loc), e.code, e.message, e.hint) for e in found.errors], sorted(values, key=str)


@pytest.mark.parametrize("seed", range(6))
def test_edits_are_read_as_the_whole_text(seed: int) -> None:
    pick, memory = random.Random(seed), Memory()
    lines, head = pick.choices(LINES, k=12), HEAD
    for _ in range(15):
        at = pick.randrange(len(lines))
        match pick.randrange(5):
            case 0:
                lines.insert(at, pick.choice(LINES))
            case 1 if len(lines) > 4:
                del lines[at]
            case 2:
                head = HEAD.replace("x * 2", pick.choice(("x * 2", "x.T", "x + nope", "x * 3")))
            case _:
                lines[at] = pick.choice(LINES)
        text = program(lines, head)
        assert described(read(text, "edited.mlc", memory)) == described(read(text, "edited.mlc", Memory())), text


def test_an_edit_evaluates_what_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated, assign = [0], evaluation._STATEMENTS[S.Assigned]

    def counted(node: Any, env: Any) -> None:
        evaluated[0] += 1
        assign(node, env)

    monkeypatch.setitem(evaluation._STATEMENTS, S.Assigned, counted)
    memory, lines = Memory(), [f"h = relu(h @ w + b) * {i}.0" for i in range(300)]

    def evaluations() -> int:
        evaluated[0] = 0
        assert read(program(lines), "long.mlc", memory).errors == []
        return evaluated[0]

    assert evaluations() > 300
    lines[100] = "h = tanh(h @ w + b)"
    assert evaluations() == 1                              # the types of what follows are the same
    lines[200:] = ["h = relu(h @ w[:, :2])"]
    assert evaluations() == 1
