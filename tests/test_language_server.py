"""The language server, through its protocol."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.workspace import Workspace

from mlc.tools import cli
from mlc.tools.language_server.ir_text import IRText, Pieces
from mlc.tools.language_server.server import Server, make_server
from tests.lsp_client import Session

PROGRAM = '''\
"""Layers."""

width = 3

model Line(n, act = relu):
    """act(x W + b)"""
    w: f32[n, 4] ~ normal(0, 1)
    b: f32[4] = 0

    def forward(x: f32[B, n]) -> f32[B, 4] = act(x @ w + b)

def loss(line: Line(3), x: f32[B, 3], y: f32[B, 4]) -> f32:
    """Squared error."""
    error = line(x) - y
    unit = softmax(error, dim=1)
    total = sum(error * line.b, dim=0) / line.n
    return mean(error ** 2) + loops(x) + sum(total)

def loops(x: f32[B, width]) -> f32:
    total = 0.0
    for i, row in zip(0..B, x):
        total += sum(row) * i
    return total
'''
MODULE = '''\
func.func @main(%x: tensor<4x8xf32>, %größe: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.exp %x : tensor<4x8xf32> loc("model.py":7:3)
  %pair:2 = func.call @two(%0) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %sum = tensor.add %pair#0, %pair#1 : tensor<4x8xf32>
  func.return %sum : tensor<4x8xf32>
}
func.func @two(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tensor.softmax %x {axis = 1} : tensor<4x8xf32>
  func.return %x, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}
'''.replace("größe", "w")


class File:
    """An open file, in which places are named by the text that stands there."""

    def __init__(self, session: Session, uri: str, text: str) -> None:
        self.session, self.uri, self.text = session, uri, text
        self.found = session.open(uri, text)
        self.document = lsp.TextDocumentIdentifier(uri)

    def position(self, text: str, within: int = 0) -> lsp.Position:
        at = self.text.index(text) + within
        line = self.text.count("\n", 0, at)
        column = at - (self.text.rfind("\n", 0, at) + 1)
        return lsp.Position(line, column)

    def at(self, found: lsp.Range) -> str:
        lines = self.text.split("\n")
        assert found.start.line == found.end.line
        return lines[found.start.line][found.start.character:found.end.character]

    def hover(self, text: str, within: int = 0) -> str:
        found = self.session.ask("text_document_hover_async", lsp.HoverParams(
            self.document, self.position(text, within)))
        return "" if found is None else found.contents.value

    def definition(self, text: str, within: int = 0) -> list[tuple[str, int]]:
        found = self.session.ask("text_document_definition_async", lsp.DefinitionParams(
            self.document, self.position(text, within)))
        return [(Path(x.uri).name, x.range.start.line + 1) for x in found or ()]

    def references(self, text: str, within: int = 0, declaration: bool = True) -> list[int]:
        found = self.session.ask("text_document_references_async", lsp.ReferenceParams(
            lsp.ReferenceContext(declaration), self.document, self.position(text, within)))
        return [x.range.start.line + 1 for x in found or ()]

    def complete(self, text: str) -> dict[str, lsp.CompletionItem]:
        found = self.session.ask("text_document_completion_async", lsp.CompletionParams(
            self.document, self.position(text, len(text))))
        return {x.label: x for x in found or ()}

    def rename(self, text: str, name: str, within: int = 0) -> str:
        """The text after a renaming."""
        found = self.session.ask("text_document_rename_async", lsp.RenameParams(
            self.document, self.position(text, within), name))
        lines = self.text.split("\n")
        for edit in sorted(found.changes[self.uri], key=lambda e: (e.range.start.line, -e.range.start.character)):
            line = lines[edit.range.start.line]
            lines[edit.range.start.line] = (line[:edit.range.start.character] + edit.new_text
                                            + line[edit.range.end.character:])
        return "\n".join(lines)

    def symbols(self) -> list[lsp.DocumentSymbol]:
        return list(self.session.ask("text_document_document_symbol_async", lsp.DocumentSymbolParams(self.document)))

    def formatted(self) -> str:
        found = self.session.ask("text_document_formatting_async", lsp.DocumentFormattingParams(
            self.document, lsp.FormattingOptions(4, True)))
        return found[0].new_text if found else self.text

    def next_level(self, text: str, level: str = "") -> Any:
        return self.session.ask("workspace_execute_command_async", lsp.ExecuteCommandParams(
            "mlc.showNextLevel", [self.uri, self.position(text).line, level]))


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    found = Session()
    yield found
    found.close()


@pytest.fixture(scope="module")
def program(session: Session) -> File:
    return File(session, "file:///lsp/program.mlc", PROGRAM)


@pytest.fixture(scope="module")
def module(session: Session) -> File:
    return File(session, "file:///lsp/module.mlir", MODULE)


def test_the_server_says_what_it_can(session: Session) -> None:
    can = session.capabilities
    assert can.hover_provider and can.definition_provider and can.references_provider and can.rename_provider
    assert can.document_symbol_provider and can.completion_provider and can.document_formatting_provider
    assert can.code_lens_provider and "mlc.showNextLevel" in can.execute_command_provider.commands


# -- diagnostics ------------------------------------------------------------------------------------------------------
def found_in(file: File) -> list[tuple[str, str]]:
    return [(str(d.code), file.at(d.range)) for d in file.found]


def test_right_files_have_no_diagnostics(program: File, module: File) -> None:
    assert program.found == [] and module.found == []


def test_all_errors_of_a_program_have_their_places(session: Session) -> None:
    file = File(session, "file:///lsp/wrong.mlc", "def f(x: f32[B, 784], w: f32[10, 784]) -> f32[B, 10]:\n"
                "    y = sotfmax(x, dim=1)\n    return x @ w\n\ndef g(x: f32[3]) = x[0, 1]\n")
    assert found_in(file) == [("MLC0622", "sotfmax"), ("MLC0367", "@"), ("MLC0366", "[")]
    assert "help: did you mean softmax?" in file.found[0].message and file.found[0].source == "mlc"


def test_syntax_errors_do_not_hide_others(session: Session) -> None:
    file = File(session, "file:///lsp/syntax.mlc", "def f(x: f32[3]):\n    y = (x +\n    return nope\n\n"
                "def g(x: f32[3]) = unknown(x)\n")
    assert [code for code, _ in found_in(file)] == ["MLC0620", "MLC0622", "MLC0622"]


def test_an_edit_changes_what_depends_on_it(session: Session) -> None:
    uri, text = "file:///lsp/edited.mlc", "def f(x: f32[3]) -> f32[3] = x\n\ndef g(x: f32[3]) -> f32[3] = f(x)\n"
    assert session.open(uri, text) == []
    assert [d.range.start.line for d in session.open(uri, text.replace("-> f32[3] = x", "= x[0]"))] == [2]
    assert session.open(uri, "# above\n\n" + text) == []
    wrong = session.open(uri, text + "\ndef h() = nope\n")
    moved = session.open(uri, "# above\n" + text + "\ndef h() = nope\n")
    assert [d.range.start.line for d in (*wrong, *moved)] == [4, 5]


def test_a_function_that_stands_twice_is_an_error_until_it_is_gone(session: Session) -> None:
    uri, text = "file:///lsp/twice.mlir", "func.func @f() {\n  func.return\n}\n"
    assert [d.code for d in session.open(uri, text + text)] == ["MLC0105"]
    assert session.open(uri, text) == []


def test_several_errors_of_ir_are_found(session: Session) -> None:
    file = File(session, "file:///lsp/wrong.mlir", MODULE.replace("tensor.exp", "tensor.expp").replace(
        "tensor.softmax %x", "tensor.softmax %nope") + "func.func @f() {\n  ! func.return\n}\n")
    assert found_in(file) == [("MLC0211", "tensor.expp"), ("MLC0208", "%nope"), ("MLC0203", "!")]


def test_what_depends_on_an_error_is_no_other(session: Session) -> None:
    file = File(session, "file:///lsp/consequence.mlir", MODULE.replace(
        "%pair:2 = func.call", "%pair:2 = func.cal"))
    assert found_in(file) == [("MLC0211", "func.cal")]


def test_rules_of_operations_are_checked(session: Session) -> None:
    file = File(session, "file:///lsp/rules.mlir", MODULE.replace("@two(%0)", "@three(%0)"))
    assert found_in(file) == [("MLC0106", "%pair")]
    file = File(session, "file:///lsp/types.mlir", MODULE.replace("%pair#1 : tensor<4x8xf32>", "%pair#1 : f32"))
    assert [code for code, _ in found_in(file)] == ["MLC0209"]


# -- hover ------------------------------------------------------------------------------------------------------------
def test_a_value_shows_its_type_its_shape_and_its_meaning(module: File) -> None:
    text = module.hover("%sum :")
    assert "%sum : tensor<4x8xf32>" in text and "shape 4 x 8, elements f32" in text and "tensor.add" in text
    assert "an argument" in module.hover("%x:")
    assert "from model.py:7:3" in module.hover("%0 = tensor.exp")


def test_an_operation_shows_its_equation(module: File) -> None:
    assert "result[i] = e^x[i]\n" in module.hover("tensor.exp") and "axis" in module.hover("tensor.softmax", 9)


def test_several_results_show_all_types(module: File) -> None:
    assert "%pair : tensor<4x8xf32>, tensor<4x8xf32>" in module.hover("%pair:2")


def test_a_function_of_ir_shows_its_type(module: File) -> None:
    assert "@two : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)" in module.hover("@two(%0)")


def test_names_of_programs_show_their_types(program: File) -> None:
    assert "error: f32[B, 4]" in program.hover("error ** 2") and "error: f32[B, 4]" in program.hover("error = line")
    assert "a size" in program.hover("B, 3]") and "width: the number 3" in program.hover("width]")
    assert "row: f32[3]" in program.hover("row) * i")


def test_functions_of_the_library_show_their_equation(program: File) -> None:
    text = program.hover("softmax(error")
    assert "softmax(input, dim, dtype)" in text and "e ** x[i] / sum_j e ** x[j]" in text


def test_definitions_show_their_line_and_text(program: File) -> None:
    assert "def loops(x: f32[B, width]) -> f32" in program.hover("loops(x) +")
    assert "act(x W + b)" in program.hover("Line(3)") and "b: f32[4]" in program.hover("line.b", 5)


def test_nothing_is_shown_where_nothing_stands(program: File, module: File) -> None:
    assert program.hover('"""Squared') == "" and module.hover("{axis") == ""


# -- definitions and references ---------------------------------------------------------------------------------------
def test_values_lead_to_their_definitions(module: File) -> None:
    assert module.definition("%sum : tensor") == [("module.mlir", 4)]
    assert module.definition("%pair#1") == [("module.mlir", 3)]
    assert module.definition("@two(%0)") == [("module.mlir", 7)]


def test_names_lead_to_their_definitions(program: File) -> None:
    assert program.definition("error ** 2") == [("program.mlc", 14)]
    assert program.definition("loops(x) +") == [("program.mlc", 19)]
    assert program.definition("Line(3)") == [("program.mlc", 5)]
    assert program.definition("line.b", 5) == [("program.mlc", 8)]
    assert program.definition("w + b") == [("program.mlc", 7)]


def test_imported_names_lead_to_their_file(session: Session, tmp_path: Path) -> None:
    (tmp_path / "parts.mlc").write_text("\ndef double(x: f32[N]) = 2 * x\n")
    file = File(session, (tmp_path / "whole.mlc").as_uri(),
                'import "parts.mlc"\nfrom "parts.mlc" import double\n\n'
                "def f(x: f32[N]) = double(x) + parts.double(x)\n")
    assert file.found == []
    assert file.definition("double(x) +") == file.definition("parts.double", 7) == [("parts.mlc", 2)]


def test_all_places_of_a_value_are_found(module: File) -> None:
    assert module.references("%x :") == [1, 2] and module.references("%pair#0") == [3, 4, 4]
    assert module.references("@two(%0)", declaration=False) == [3]


def test_all_places_of_a_name_are_found(program: File) -> None:
    assert program.references("total = sum") == [16, 17] and program.references("width]") == [3, 19]
    assert program.references("b: f32[4]") == [8, 10, 16]


# -- outline ----------------------------------------------------------------------------------------------------------
def test_the_outline_of_a_module_has_its_functions(module: File) -> None:
    assert [(s.name, s.range.end.line) for s in module.symbols()] == [("@main", 5), ("@two", 9)]


def test_the_outline_of_a_program_has_models_with_their_members(program: File) -> None:
    found = {s.name: s for s in program.symbols()}
    assert list(found) == ["width", "Line", "loss", "loops"]
    assert [c.name for c in found["Line"].children or ()] == ["w", "b", "forward"]
    assert found["Line"].kind == lsp.SymbolKind.Class


# -- completion -------------------------------------------------------------------------------------------------------
def test_values_in_scope_are_proposed(module: File) -> None:
    found = module.complete("tensor.add %")
    assert {"%x", "%0", "%pair#0", "%pair#1"} <= found.keys() and "%sum" not in found
    assert found["%0"].detail == "tensor<4x8xf32>"
    assert set(module.complete("tensor.softmax %")) == {"%x"}


def test_operations_attributes_types_and_functions_are_proposed(module: File) -> None:
    assert module.complete("%0 = tensor.")["tensor.tanh"].detail
    assert "axis" in module.complete("%0 = tensor.softmax %x {")
    assert "f32" in module.complete("%0 = tensor.exp %x : ")
    assert {"@main", "@two"} <= module.complete("func.call @").keys()


def test_names_of_programs_are_proposed(program: File) -> None:
    found = program.complete("return ")
    assert {"error", "unit", "line", "x", "loops", "width", "softmax"} <= found.keys() and "row" not in found
    assert found["error"].detail == "f32[B, 4]"


def test_members_are_proposed_behind_a_dot(session: Session) -> None:
    file = File(session, "file:///lsp/dots.mlc", PROGRAM + "\ndef f(x: f32[N], line: Line(3)):\n    y = nn.\n"
                "    z = line.\n    t = x.\n    return x\n")
    assert "LayerNorm" in file.complete("y = nn.") and {"w", "b", "forward"} == file.complete("z = line.").keys()
    assert {"T", "shape", "softmax"} <= file.complete("t = x.").keys()


def test_types_and_parameters_are_proposed(session: Session, program: File) -> None:
    file = File(session, "file:///lsp/typing.mlc", PROGRAM + "\ndef f(x: \n\ndef g(x: f32[N]) = softmax(x, \n")
    assert {"f32", "i64", "Line"} <= file.complete("def f(x: ").keys()
    assert "dim=" in file.complete("= softmax(x, ")


# -- changes ----------------------------------------------------------------------------------------------------------
def test_values_are_renamed_everywhere(module: File) -> None:
    assert module.rename("%pair#0", "two") == MODULE.replace("%pair", "%two")
    assert module.rename("@two(%0)", "both") == MODULE.replace("@two", "@both")
    text = module.rename("%x: tensor<4x8xf32>, ", "input")
    assert text.count("%input") == 2 and "@two(%x:" in text


def test_names_are_renamed_everywhere(program: File) -> None:
    assert program.rename("error = line", "off") == PROGRAM.replace("error ", "off ").replace(
        "error,", "off,").replace("Squared off.", "Squared error.").replace("(error", "(off")
    text = program.rename("b: f32[4]", "bias")
    assert "line.bias" in text and "+ bias)" in text and "bias: f32[4]" in text
    text = program.rename("n, act", "rows")
    assert "line.rows" in text and "Line(rows, act" in text and "w: f32[rows, 4]" in text


@pytest.mark.parametrize(("place", "name", "reason"), [
    ("error = line", "unit", "unit is another name here"), ("error = line", "for", "no word of the language"),
    ("softmax(error", "hardmax", "nothing that this file defines"),
    ("error = line", "softmax", "softmax means something else in this file"),
    ("forward(x", "apply", "forward is what a call of the model runs")])
def test_names_that_cannot_be_are_refused(program: File, place: str, name: str, reason: str) -> None:
    with pytest.raises(JsonRpcException, match=f"MLC0690.*{reason}"):
        program.rename(place, name)


def test_values_that_cannot_be_renamed_are_refused(module: File) -> None:
    with pytest.raises(JsonRpcException, match="MLC0690: %0 is another value"):
        module.rename("%sum = ", "0")
    with pytest.raises(JsonRpcException, match="@main is defined already"):
        module.rename("@two(%0)", "main")


def test_what_can_be_renamed_is_marked(module: File, program: File) -> None:
    def marked(file: File, text: str) -> str | None:
        found = file.session.ask("text_document_prepare_rename_async", lsp.PrepareRenameParams(
            file.document, file.position(text)))
        return None if found is None else file.at(found)

    assert marked(module, "%sum :") == "%sum" and marked(program, "error ** 2") == "error"
    assert marked(module, "func.return") is None


def test_files_are_formatted(session: Session) -> None:
    file = File(session, "file:///lsp/loose.mlc", "def f(x:f32[N])=x+1   # one\n")
    assert file.formatted() == "def f(x: f32[N]) = x + 1   # one\n"
    loose = File(session, "file:///lsp/loose.mlir", MODULE.replace("  ", "      ").replace(" = ", "="))
    assert loose.formatted() == MODULE


def test_files_with_errors_are_not_formatted(session: Session) -> None:
    with pytest.raises(JsonRpcException, match="MLC0620"):
        File(session, "file:///lsp/broken.mlc", "def f(x: f32[N]) = (\n").formatted()


# -- levels -----------------------------------------------------------------------------------------------------------
def test_a_line_is_shown_at_the_next_level(module: File, session: Session) -> None:
    found = module.next_level("%0 = tensor.exp")
    lines = found["text"].split("\n")
    assert found["level"] == "loop" and found["lines"] and "loop.kernel" in found["text"]
    assert any("math." in lines[i] or "loop." in lines[i] for i in found["lines"])
    assert session.shown and session.shown[-1].endswith("loop.mlir")


def test_a_line_of_a_program_is_shown_as_tensor_operations(program: File) -> None:
    found = program.next_level("error = line")
    lines = found["text"].split("\n")
    assert found["level"] == "tensor" and any("tensor.sub" in lines[i] for i in found["lines"])
    assert program.next_level("total += sum", "llvm")["level"] == "llvm"


def test_there_is_nothing_below_the_last_level(session: Session) -> None:
    file = File(session, "file:///lsp/last.mlir", "llvm.func @f() {\n  llvm.return\n}\n")
    with pytest.raises(JsonRpcException, match="MLC0335: there is no level below llvm"):
        file.next_level("llvm.return")


def test_functions_have_a_lens(program: File, module: File) -> None:
    for file, lines in ((program, [11, 18]), (module, [0, 6])):
        found = file.session.ask("text_document_code_lens_async", lsp.CodeLensParams(file.document))
        assert [x.range.start.line for x in found] == lines
        assert list(found[0].command.arguments) == [file.uri, lines[0], ""]


def test_columns_count_in_utf_16(session: Session) -> None:
    file = File(session, "file:///lsp/wide.mlc", "def f(x: f32[3]):\n    größe = x\n    return größe, nope\n")
    assert file.found[0].range.start.character == 18
    wide = File(session, "file:///lsp/widest.mlc", '# \U0001f600\ndef f(x: f32[3]) = ("\U0001f600", nope)\n')
    assert wide.found[0].range.start == lsp.Position(1, 26)


def test_without_its_package_the_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    import sys
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.delitem(sys.modules, "mlc.tools.language_server.server", raising=False)
    assert cli.main(["lsp"]) == 1 and "pip install 'mlc[editor]'" in capsys.readouterr().err


def test_cycles_are_collected_after_the_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    server, collecting = make_server("0"), list[bool]()

    def analysis(self: Server, uri: str) -> IRText:
        collecting.append(gc.isenabled())
        return IRText("", Pieces())

    monkeypatch.setattr(Server, "analysis", analysis)
    monkeypatch.setattr(Server, "text_document_publish_diagnostics", lambda self, _: collecting.append(gc.isenabled()))
    monkeypatch.setattr(Server, "workspace", Workspace(None))
    server.publish("file:///a.mlir")
    assert (collecting, gc.isenabled()) == ([False, False], True)


def test_the_server_ends_well_and_takes_its_diagnostics_along() -> None:
    import subprocess
    import sys

    def message(method: str, params: Any, **more: Any) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    file = {"uri": "file:///f.mlc", "languageId": "mlc", "version": 1, "text": "def f(x: f32) -> f32 = y\n"}
    words = b"".join([message("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1),
                      message("textDocument/didOpen", {"textDocument": file}),
                      message("textDocument/didClose", {"textDocument": {"uri": file["uri"]}}),
                      message("shutdown", None, id=2), message("exit", None)])
    done = subprocess.run([sys.executable, "-m", "mlc.tools.cli", "lsp"], input=words, capture_output=True, timeout=60)
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    published = re.findall(rb'"diagnostics": ?(\[.*?\])[,}]', done.stdout)
    assert len(published) == 2 and published[0] != b"[]" and published[1] == b"[]"
