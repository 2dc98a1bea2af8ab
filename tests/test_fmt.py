"""mlc fmt: the layout of files; what they mean stays."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path

import pytest

from mlc.frontend.language.parser import KEYWORDS
from mlc.ir.diag import Error, InternalError
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from mlc.tools import cli
from mlc.tools.fmt import formatted
from mlc.tools.formatting import program
from mlc.tools.language_server import ir_reader
from tests.corpus import PROGRAMS

ROOT = Path(__file__).parent.parent
SYNTAXES = ROOT / "tools/editor/syntaxes"
LOOSE = '''\
"""doc"""
import "layers.mlc" as l   # a



# about f
def f( x :f32[ B,N ],w=3 )->f32[B]:
      # inner
      y=x*-1+  x[ :,0 : 2,...,none ]**2
      if w>2 :
          y=y if w else-y   # deep
      # end
      return sum(  y,dim =1,
          keepdim =false)

def g(x)=f'(x)[0..3]
'''
TIDY = '''\
"""doc"""
import "layers.mlc" as l   # a


# about f
def f(x: f32[B, N], w = 3) -> f32[B]:
    # inner
    y = x * -1 + x[:, 0:2, ..., none] ** 2
    if w > 2:
        y = y if w else -y   # deep
    # end
    return sum(y, dim=1,
        keepdim=false)

def g(x) = f'(x)[0..3]
'''


def texts() -> list[tuple[str, str]]:
    """Every text of the repository that has no errors, with its language."""
    out = []
    for folder in ("examples", "tests", "tools"):
        for path in sorted((ROOT / folder).rglob("*.ml[ci]*")):
            kind = path.suffix[1:]
            if kind in ("mlc", "mlir"):
                text = path.read_text(encoding="utf-8")
                out += [(part, kind) for part in (text.split("// -----\n") if kind == "mlir" else [text])]
    return out


@pytest.mark.parametrize("seed", range(40))
def test_ir_of_any_spaces_has_one_layout(seed: int) -> None:
    text = '''func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {a = 1, b = [1, 2], c = {d = "x"}, e} {
  %0 = tensor.softmax %x {axis = 1} : tensor<2x3xf32>
  %2:2 = func.call @g(%0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  func.return %2#0 : tensor<2x3xf32>
}
'''
    pick, out, end, depth = random.Random(seed), "", 0, 0
    before = None
    for token in ir_reader.read(text, "f.mlir").tokens:
        gap = text[end:token.start]
        if "\n" not in gap and not depth and token.text != "<" and before is not None:
            words = re.search(r"[\w\"]$", before) and re.match(r"[\w%@\"]", token.text)
            gap = pick.choice([" ", "  "] if words else ["", " ", "  "])
        out, end, before = out + gap + token.text, token.start + len(token.text), token.text
        depth += (token.text == "<") - (token.text == ">")
    assert formatted(out, "mlir") == text


def test_every_file_keeps_its_meaning_and_stays_as_it_is_laid_out() -> None:
    count = 0
    for text, kind in texts():
        try:
            new = formatted(text, kind)                    # which compares tokens, trees and comments
        except InternalError:
            raise
        except Error:
            continue                                       # a case of an error
        assert formatted(new, kind) == new
        count += 1
    assert count > 400


@pytest.mark.parametrize(("width", "least"), [(20, 20), (50, 10), (90, 3)])
def test_long_lines_are_broken_in_brackets(width: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "WIDTH", width)
    broken = 0
    for text, kind in texts():
        if kind == "mlc":
            try:
                new = formatted(text, kind)                # which compares trees and comments
            except InternalError:
                raise
            except Error:
                continue
            assert formatted(new, kind) == new
            broken += len(new.split("\n")) > len(text.split("\n"))
    assert broken > least


def test_where_long_lines_are_broken() -> None:
    names = [f"{'x' * 20}{i}" for i in range(7)]
    head = f"def f({', '.join(f'{n}: f32[2]' for n in names)}) -> f32[2]:\n"
    assert formatted(head + f"    return {names[0]}\n", "mlc").split("\n")[:2] == [
        f"def f({', '.join(f'{n}: f32[2]' for n in names[:3])},", " " * 6 + ", ".join(
            f"{n}: f32[2]" for n in names[3:6]) + ","]
    body = f"def f(x):\n    y = ({' + '.join(names)})  # of x\n    return y\n"
    assert formatted(body, "mlc").split("\n")[1:3] == [
        f"    y = ({' + '.join(names[:4])}", " " * 9 + f"+ {' + '.join(names[4:])})  # of x"]
    outside = f"def f(x):\n    return {' + '.join(names)}\n"
    assert formatted(outside, "mlc") == outside
    many = "def f(x):\n    return sum([" + ", ".join(["x"] * 10_000) + "])\n"
    assert max(map(len, formatted(many, "mlc").split("\n"))) <= 120


def test_the_layout_is_that_of_the_printer() -> None:
    name = min(PROGRAMS, key=lambda n: len(to_text(PROGRAMS[n]()[0])))
    for level in pipeline.LEVELS:
        module = pipeline.lower(PROGRAMS[name]()[0], level)
        for text in (to_text(module), to_text(module, locations=True), to_text(module, generic=True)):
            assert formatted(text, "mlir") == text


def test_programs_have_four_spaces_and_spaces_around_operators() -> None:
    assert formatted(LOOSE, "mlc") == TIDY == formatted(TIDY, "mlc")
    tabs = "def f(x: f32[N]):\n\tif true:\n\t\ty = x\n\telse:\n\t\ty = -x\n\treturn y\n"
    assert formatted(tabs, "mlc") == tabs.expandtabs(4)


def test_modules_have_two_spaces() -> None:
    loose = ("// above\n\nfunc.func @f(%x:tensor<4xf32>)->tensor<4xf32>{\n// at the margin\n     // inner\n"
             "%0=tensor.exp   %x:tensor<4xf32> // of x\n\n\n  func.return %0:tensor<4xf32>\n   // last\n}\n")
    assert formatted(loose, "mlir") == (
        "// above\n\nfunc.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n// at the margin\n  // inner\n"
        "  %0 = tensor.exp %x : tensor<4xf32>  // of x\n\n  func.return %0 : tensor<4xf32>\n  // last\n}\n")


def test_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "loose.mlc", tmp_path / "link.mlc"
    file.write_text("def f(x:f32[N])=x+1\n")
    link.symlink_to(file)
    assert cli.main(["fmt", str(link)]) == 0
    assert link.is_symlink() and file.read_text() == "def f(x: f32[N]) = x + 1\n"


def test_a_file_that_cannot_be_read_leaves_the_others_to_be_laid_out(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("b.mlc", ".venv/c.mlc"):
        (tmp_path / name).write_text("def f(x:f32)->f32=x\n")
    (tmp_path / "a.mlc").write_bytes(b"\xff")
    assert cli.main(["fmt", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "a.mlc is not UTF-8" in err and "1 file, 1 changed" in out
    assert (tmp_path / "b.mlc").read_text() == "def f(x: f32) -> f32 = x\n"
    assert (tmp_path / ".venv" / "c.mlc").read_text() == "def f(x:f32)->f32=x\n"      # which is somebody else's


def test_the_command_checks_shows_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    loose, wrong = tmp_path / "loose.mlc", tmp_path / "wrong.mlir"
    loose.write_text("def f(x:f32[N])=x\n")
    wrong.write_text("func.func @f( {\n")
    assert cli.main(["fmt", "--check", "loose.mlc"]) == 1
    assert capsys.readouterr().out == "loose.mlc is not in its layout\n1 file, 1 to change\n"
    assert cli.main(["fmt", "--diff", "loose.mlc"]) == 0
    assert "+def f(x: f32[N]) = x\n" in capsys.readouterr().out and loose.read_text() == "def f(x:f32[N])=x\n"
    assert cli.main(["fmt", "."]) == 1                     # the other one has an error, and stays
    assert "wrong.mlir:1:" in capsys.readouterr().err and wrong.read_text() == "func.func @f( {\n"
    assert loose.read_text() == "def f(x: f32[N]) = x\n" and cli.main(["fmt", "--check", "loose.mlc"]) == 0
    assert capsys.readouterr().out.endswith("1 file, 0 to change\n")
    stdin = io.TextIOWrapper(io.BytesIO(b"x=1\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    assert cli.main(["fmt", "-", "--kind", "mlc"]) == 0 and capsys.readouterr().out == "x = 1\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x=1\n")))
    assert cli.main(["fmt", "-"]) == 1 and "for the other language give --kind mlc" in capsys.readouterr().err
    assert cli.main(["fmt", "notes.txt"]) == 2


# -- highlighting -----------------------------------------------------------------------------------------------------
def scope_of(grammar: str, text: str, word: str) -> str:
    """The scope of a word by the first rule that matches there, in a line without nested ones."""
    rules = json.loads((SYNTAXES / f"{grammar}.tmLanguage.json").read_text())
    work, flat = [*rules["patterns"]], []
    while work:
        rule = work.pop(0)
        if "include" in rule:
            work.insert(0, rules["repository"][rule["include"][1:]])
        elif "match" in rule or "begin" in rule:
            flat.append(rule)
        else:
            work = [*rule["patterns"], *work]
    at, wanted = 0, text.index(word)
    while at < len(text):
        found = [(m, r) for r in flat if (m := re.compile(r.get("match", r.get("begin"))).search(text, at))]
        if not found:
            return ""
        m, rule = min(found, key=lambda pair: pair[0].start())
        if m.start() <= wanted < m.end():
            numbers = [i for i in range(1, (m.re.groups or 0) + 1) if m.start(i) <= wanted < m.end(i)]
            return str(rule["captures"][str(numbers[0])]["name"] if numbers and "captures" in rule else rule["name"])
        at = max(m.end(), at + 1)
    return ""


@pytest.mark.parametrize(("grammar", "text", "word", "scope"), [
    ("mlc", "def f(x: f32[N]) = x  # note", "f(", "entity.name.function.mlc"),
    ("mlc", "def f(x: f32[N]) = x  # note", "f32", "storage.type.element.mlc"),
    ("mlc", "def f(x: f32[N]) = x  # note", "note", "comment.line.number-sign.mlc"),
    ("mlc", "    return softmax(x, dim=1)", "dim", "variable.parameter.mlc"),
    ("mlc", "    return softmax(x, dim=1)", "softmax", "entity.name.function.call.mlc"),
    ("mlir", "%0 = tensor.exp %x : tensor<4xf32>", "tensor.exp", "keyword.operation.mlir"),
    ("mlir", "%0 = tensor.exp %x : tensor<4xf32>", "%x", "variable.other.mlir"),
    ("mlir", "func.func @f(%x: index) {", "@f", "entity.name.function.mlir"),
    ("mlir", "^bb1(%x: i64):  // note", "^bb1", "entity.name.label.mlir")])
def test_grammars_highlight(grammar: str, text: str, word: str, scope: str) -> None:
    assert scope_of(grammar, text, word) == scope


@pytest.mark.parametrize("word", sorted(KEYWORDS - {"def", "model"}))
def test_every_word_of_the_language_is_highlighted(word: str) -> None:
    assert scope_of("mlc", f" {word} ", word).startswith(("keyword", "constant", "storage"))
