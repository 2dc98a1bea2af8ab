"""mlc explain: where each operation comes from, what passes did, and the forms that say so."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlc.backends.cpu.targets import host
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import UNKNOWN
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline
from mlc.passes import pipeline
from mlc.roofline import Level, Limits
from mlc.tools import cli, run
from mlc.tools.explain import as_json, collect, explanation, page, subjects
from mlc.tools.explain.explanation import Explanation, Line
from mlc.tools.explain.lineage import Lineage
from mlc.tools.explain.printing import ContinuousPrinter
from tests.corpus import PROGRAMS

ROOT = Path(__file__).parent.parent
STEP = """\
import mlc

def step(w: mlc.spec(8, 4), x: mlc.spec("B", 8), y: mlc.spec("B", 4)):
    def loss(w):
        h = mlc.softmax(x @ w, dim=1)
        a, b = h.exp(), h.exp()
        return ((a - y) ** 2).mean() + b.sum() * 1
    value, gradient = mlc.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value
"""
SMALL = """\
import mlc

def step(x: mlc.spec("B", 8)):
    y = x + 1

    h = mlc.softmax(y, dim=1)
    return h * 2
"""
TARGETS = [host(), Target.parse("cuda:sm_90")]
LIMITS = Limits({"f32": (50.0, 100.0)}, (Level("L2", 100, (100.0, 200.0)), Level("memory", 1000, (20.0, 20.0))), 2)


def of_text(module: Any, target: Target = TARGETS[0]) -> Explanation:
    return collect.explain(collect.Subject("test", module, target, own_files=(str(ROOT / "tests" / "corpus.py"),)))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The program SMALL, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "step_explained.py"
    path.write_text(SMALL)
    yield path
    sys.modules.pop("step_explained", None)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Explanation:
    path = tmp_path_factory.mktemp("explained") / "explained_once.py"
    path.write_text(STEP)
    subject = subjects.of_function(str(path), "step", None, host(), None)
    return collect.explain(subjects.specialise(subject, "B=16"))


def level(found: Explanation, name: str) -> list[Line]:
    return next(x.lines for x in found.levels if x.name == name)


def lost(module: Op, target: Target = TARGETS[0]) -> list[str]:
    """The operations of the last level that have no line, or come from no operation of the recording."""
    lineage, number = Lineage(), 0
    lineage.look(module, 0)

    def after(step: Any, module: Op) -> None:
        nonlocal number
        number += 1
        lineage.look(module, number)

    Pipeline(pipeline.remaining(module, "llvm", target.machine)).run(module, Instruments(after=after))
    recorded: list[bool] = []                              # parents come before what is made of them
    for node in lineage.nodes:
        recorded.append(node.born == 0 or any(p < node.number and recorded[p] for p in node.parents))
    last = [lineage.nodes[lineage.number_of[op]] for op in module.walk()]
    return [f"{node.name} of {node.loc}" for node in last
            if not (recorded[node.number] and node.loc.file and node.loc.line)]


# -- locations --------------------------------------------------------------------------------------------------------
def test_every_operation_of_a_step_that_checks_before_it_updates_has_its_line() -> None:
    text = (ROOT / "tests/cases/guard_updates/steps.mlir").read_text().split("// -----\n")[1]
    assert "tensor.fail_if" in text and "updates" in text
    assert lost(parse_module(text, "steps.mlir")) == []


def test_an_operation_that_has_lost_its_line_is_found() -> None:
    """As one that a pass builds without `located`, or out of nothing."""
    module = parse_module("func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = tensor.exp %x : tensor<8xf32>\n"
                          "  func.return %0 : tensor<8xf32>\n}", "f.mlir")
    other = module.clone()
    assert lost(module) == []
    next(op for op in other.walk() if op.name == "tensor.exp").loc = UNKNOWN
    assert lost(other)


@pytest.mark.parametrize("target", [TARGETS[0], pytest.param(TARGETS[1], marks=pytest.mark.slow)],
                         ids=lambda t: t.vendor)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_operation_at_the_last_level_has_its_line(name: str, target: Target) -> None:
    assert lost(PROGRAMS[name]()[0], target) == []


FUNCTIONS = ("newton.mlc:roots", "digits.mlc:loss", "digits.mlc:step", "rnn.mlc:classify", "transformer.mlc:loss")
EXAMPLES = ("beam_search", "bert_layer", "digits_cnn --epochs 1", "early_exit", "maml", "newton", "ode", "rnn_lengths",
            "gpt --steps 2 --context 16 --layers 1 --width 32 --batch 4", "digits", "digits_ddp --epochs 1",
            "resnet18 --size 32 --batch 2", "sharded_gpt --steps 1 --batch 4",
            "assistant --steps 1 --batch 1 -o FOLDER")


@pytest.mark.parametrize("function", [pytest.param(f, marks=[pytest.mark.slow] * (i > 1))
                                      for i, f in enumerate(FUNCTIONS)])
def test_every_operation_of_the_text_examples_has_its_line(function: str) -> None:
    path, _, name = function.partition(":")
    assert lost(subjects.of_function(str(ROOT / "examples" / path), name, None, host(), None).module) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", EXAMPLES)
def test_every_operation_of_every_example_has_its_line(words: str, monkeypatch: pytest.MonkeyPatch,
                                                       tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    name, *arguments = words.replace("FOLDER", str(tmp_path)).split()
    if name in ("digits_ddp", "sharded_gpt"):              # which are one rank of several
        for variable, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
            monkeypatch.setenv(variable, value)
    path = f"examples/{name}.py"
    with subjects._compilations() as made:
        run.program(path, arguments, check=False)
    assert made
    for compilation in made:
        assert lost(compilation.module) == []


def test_no_example_is_left_out() -> None:
    predict = {"plan_llama", "scaling"}                    # what programs would take that run nowhere here
    assert {p.stem for p in (ROOT / "examples").glob("*.py")} == {words.split()[0] for words in EXAMPLES} | predict
    assert {p.name for p in (ROOT / "examples").glob("*.mlc")} == {
        "layers.mlc", *(function.partition(":")[0] for function in FUNCTIONS)}             # which others import


def test_each_instruction_is_of_the_line_that_asks_for_it(found: Explanation) -> None:
    places = {line.text.split()[0]: {p.line for p in found.ops[line.op].places} for line in level(found, "asm")
              if line.op >= 0 and line.text.startswith(" ")}
    division = next(lines for name, lines in places.items() if "div" in name and not name.startswith(("div", "idiv")))
    assert division <= {5, 7, 8}                           # the softmax, its derivative, and the mean


def test_equal_operations_stand_for_all_their_lines() -> None:
    module = parse_module("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.exp %x : tensor<4xf32>
  %1 = tensor.exp %x : tensor<4xf32>
  %2 = tensor.mul %0, %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}""", "two.mlir")
    found = of_text(module)
    exp = [op for op in found.ops if op.name == "tensor.exp" and op.made == 0]
    assert [[p.line for p in op.places] for op in exp] == [[3, 4], [4]]
    assert 0 < exp[1].gone == next(p.number for p in found.passes if p.name == "cse")


# -- passes -----------------------------------------------------------------------------------------------------------
def test_a_rule_is_named_where_it_removes_an_operation(found: Explanation) -> None:
    removed = next(op for op in found.ops if op.removed == "one_on_the_right")
    assert removed.name == "tensor.mul" and 7 in {p.line for p in removed.places} and removed.instead
    fired = next(r for p in found.passes for r in p.rules if r.name == "one_on_the_right")
    assert fired.equation.startswith("x * 1 == x") and fired.fired >= 1


@pytest.mark.parametrize("name", ["softmax_by_hand", "symbolic_rows_and_columns"])
def test_the_changes_of_each_pass_lead_from_one_text_to_the_next(name: str) -> None:
    found = of_text(PROGRAMS[name]()[0])
    text = set(found.levels[0].lines)
    for p in found.passes:
        for hunk in p.hunks:
            assert set(hunk.removed) <= text and not set(hunk.added) & text
        text -= {line for hunk in p.hunks for line in hunk.removed}
        text |= {line for hunk in p.hunks for line in hunk.added}
    assert text == set(level(found, "llvm"))


def test_a_pass_without_changes_shows_none(found: Explanation) -> None:
    assert [p.hunks for p in found.passes if p.name == "decompose_complex"] == [[]]


# -- kernels and memory -----------------------------------------------------------------------------------------------
def test_kernels_have_what_fuse_recorded(found: Explanation) -> None:
    product, *others = found.kernels
    assert product.label == "dot_general" and product.flops == "64*B" and product.bytes == "48*B + 128"
    assert product.schedule.startswith("#loop.schedule<") and product.code == "kernel_dot_general"
    assert any("both have a loop of their own" in why for k in others for why in k.unfused)
    assert any("at its own point" in why for k in others for why in k.fused)
    assert all(x.source == -1 or x.source in {k.op for k in found.kernels} for k in found.kernels for x in k.inputs)


def test_a_gather_reads_its_rows_and_not_the_table() -> None:
    module = parse_module("""
func.func @main(%t: tensor<1000x8xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32> {
  %0 = tensor.take %t, %i {axis = 0} : (tensor<1000x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  func.return %0 : tensor<5x8xf32>
}""", "gather.mlir")
    assert [k.bytes for k in of_text(module).kernels] == [str(2 * 5 * 8 * 4 + 5 * 8)]


def test_buffers_of_the_plan_do_not_overlap_while_they_live(found: Explanation) -> None:
    plan = next(as_json.document(found)["memory"][i] for i, m in enumerate(found.memory) if m.function == "main")
    buffers = plan["buffers"]
    assert buffers and all(b["first"] <= b["last"] < len(plan["steps"]) for b in buffers)
    for i, a in enumerate(buffers):
        assert a["offset"]["value"] + a["size"]["value"] <= plan["total"]["value"]
        for b in buffers[:i]:
            together = a["first"] < b["last"] and b["first"] < a["last"]       # in place at one step
            apart = any(x["offset"]["value"] + x["size"]["value"] <= y["offset"]["value"] for x, y in ((a, b), (b, a)))
            assert apart or not together, (a, b)


def test_values_keep_their_names(found: Explanation) -> None:
    tensor = {line.op: line.text.split(" = ")[0] for line in level(found, "tensor") if " = " in line.text}
    trace = {line.op: line.text.split(" = ")[0] for line in level(found, "trace") if " = " in line.text}
    assert tensor.keys() & trace.keys()
    assert all(tensor[op] == trace[op] for op in tensor.keys() & trace.keys())


# -- forms ------------------------------------------------------------------------------------------------------------
def test_operations_of_one_kind_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = dict[str, int]()
    text, printed = ContinuousPrinter._text, ContinuousPrinter._printed

    def counted(self: ContinuousPrinter, op: Op) -> str:
        made["printed"] = made.get("printed", 0) + 1
        return printed(self, op)

    def compared(self: ContinuousPrinter, op: Op) -> str:
        found = text(self, op)
        made["all"] = made.get("all", 0) + 1
        assert found == printed(self, op)
        return found

    monkeypatch.setattr(ContinuousPrinter, "_printed", counted)
    monkeypatch.setattr(ContinuousPrinter, "_text", compared)
    of_text(parse_module("func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {\n" + "".join(
        f"  %{i} = tensor.{name} %{i - 1 if i else 'x'} : tensor<8x64xf32>\n"
        for i, name in enumerate(["exp", "tanh", "sin"] * 3))
        + "  func.return %8 : tensor<8x64xf32>\n}", "f.mlir"))
    assert made["printed"] < made["all"] / 3


def test_the_json_fits_its_schema(found: Explanation) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "tools" / "explain" / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for limits in (None, LIMITS):
        text = as_json.text(replace(found, limits=limits))
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(json.loads(text)))
        assert not errors, errors[0]
    named = set(re.findall(r'"(\w+)": \{', json.dumps(schema["$defs"])))
    fields = {f for cls in vars(explanation).values() if isinstance(cls, type) for f in getattr(
        cls, "__dataclass_fields__", ())} - set(Explanation.__dataclass_fields__)
    assert fields <= named


def test_kernels_are_bound_by_the_level_that_has_room_for_them(found: Explanation) -> None:
    kernels = [replace(found.kernels[0], flops=flops, bytes=bytes, threads=True)
               for flops, bytes in (("10", "400"), ("10", "401"), ("1000", "400"), ("?", "4"))]
    out = as_json.document(replace(found, kernels=kernels, limits=LIMITS))
    assert [k["bound"] for k in out["kernels"]] == [
        {"level": "L2", "seconds": 2.0}, {"level": "memory", "seconds": 20.05}, {"level": "L2", "seconds": 10.0}, None]
    assert out["limits"] == {"flops": [50.0, 100.0], "threads": 2, "levels": [
        {"name": "L2", "size": 100, "bytes": [100.0, 200.0]}, {"name": "memory", "size": 1000, "bytes": [20.0, 20.0]}]}


def test_a_kernel_that_runs_on_one_thread_is_bound_by_what_one_can_do(file: Path) -> None:
    file.write_text("import mlc\n\ndef step(x: mlc.spec(512, 512), y: mlc.spec(4)):\n"
                    "    return mlc.exp(x), mlc.exp(y)\n")
    found = collect.explain(subjects.of_function(file.name, "step", None, host(), None))
    large, small = sorted(found.kernels, key=lambda k: -int(k.flops))
    assert large.threads and not small.threads
    file.write_text("import mlc\n\ndef step(x: mlc.spec('B', 512)):\n    return mlc.exp(x)\n")
    for sizes, threads in (("B=512", True), ("B=1", False)):
        of_size = subjects.of_function(file.name, "step", None, host(), None)
        (kernel,) = collect.explain(subjects.specialise(of_size, sizes)).kernels
        assert kernel.threads == threads
    of_one = replace(small, flops="1000", bytes="200")
    out = as_json.document(replace(found, kernels=[of_one, replace(of_one, threads=True)], limits=LIMITS))
    assert [k["bound"] for k in out["kernels"]] == [{"level": "L2", "seconds": 20.0}, {"level": "L2", "seconds": 10.0}]


def test_the_compact_form_says_the_same(found: Explanation) -> None:
    packed, plain = json.loads(as_json.compact(found)), as_json.document(found)
    texts = packed["texts"]
    for short, long in zip(packed["levels"], plain["levels"]):
        numbers = short["lines"]
        assert [(texts[t], op) for t, op in zip(numbers[::2], numbers[1::2])] == [
            (line["text"], line["op"]) for line in long["lines"]]
    assert [texts[n] for n in packed["ops"]["name"]] == [op["name"] for op in plain["ops"]]
    assert packed["kernels"] == plain["kernels"] and len(packed["hunks"]) == len(plain["passes"])


def test_the_page_asks_for_nothing_and_holds_its_data(found: Explanation) -> None:
    text = page.render(found)
    asks = r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)"""
    data = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert data is not None and not re.findall(asks, text.replace(data[1], ""))
    assert gzip.decompress(base64.b64decode(data[1])).decode() == as_json.compact(found)


def test_hostile_names_stay_text(file: Path) -> None:
    file.write_text('import mlc\n\ndef step(x: mlc.spec(3)):\n    return x + 1  # </script><script>alert(1)</script>\n')
    found = collect.explain(subjects.of_function(file.name, "step", None, host(), None))
    assert page.render(found).count("<script") == 3


# -- the command ------------------------------------------------------------------------------------------------------
@pytest.fixture
def command(file: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str) -> tuple[int, str, str]:
        status = cli.main(("explain", *words))
        return status, *capsys.readouterr()
    return call


def test_the_least_times_of_kernels_as_text(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlc.tools.bench.roofline.limits", lambda threads: LIMITS)
    status, out, _ = command("step_explained.py:step", "--roofline")
    assert status == 0 and re.search(r"^least +kernel +function", out, re.M)
    status, out, _ = command("step_explained.py:step", "--roofline", "--line", "6")
    assert status == 0 and re.search(r"bytes, \S+ u?m?s at least by (one thread|2 threads)$", out, re.M)


def test_a_line_through_all_levels(command: Any) -> None:
    status, out, _ = command("step_explained.py:step", "--line", "step_explained.py:6")
    assert status == 0 and "h = mlc.softmax(y, dim=1)" in out
    places = [out.index(f"\n{name}: ") for name in explanation.LEVELS]
    assert places == sorted(places)
    assert re.search(r"decompose: .*tensor\.softmax.* -> .*tensor\.reduce_max", out)
    assert "more; --all shows them" in out
    assert "--all shows them" not in command("step_explained.py:step", "--line", "6", "--all")[1]


def test_the_summary_has_levels_passes_and_kernels(command: Any) -> None:
    out = command("step_explained.py:step")[1]
    assert re.search(r"^llvm +[\d,]+$", out, re.M) and "canonicalize" in out
    assert "reduce_max" in out and "B x 8" in out


def test_sentences_are_wrapped_and_not_cut(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    last = command("step_explained.py:step")[1].rpartition("\n\n")[2]
    assert last.split()[-3:] == ["at", "every", "level"] and max(map(len, last.splitlines())) <= 60


def test_the_only_function_of_a_file_needs_no_name(command: Any, file: Path) -> None:
    Path("one.mlc").write_text("def f(x: f32[N]) -> f32[N] = exp(x)\n")
    assert command("one.mlc")[1].startswith("one.mlc:f for host")
    Path("two.mlc").write_text("def f(x: f32[N]) = exp(x)\n\ndef g(x: f32[N]) = x\n")
    assert re.search(r"MLC0399(?s:.*)it has f, g\n", command("two.mlc")[2])


def test_a_page_is_written_whole(command: Any, file: Path) -> None:
    assert command("step_explained.py:step", "-o", "out.html")[0] == 0
    text = Path("out.html").read_text()
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert {*os.listdir()} - {"__pycache__"} == {"out.html", file.name}


def test_a_program_explains_its_largest_compilation(command: Any, file: Path) -> None:
    file.write_text(SMALL + """
@mlc.compile
def large(x):
    return mlc.softmax(x @ x.T, dim=1).sum()

mlc.compile(lambda x: x + 1)(mlc.ones(3))
for rows in (2, 3):
    large(mlc.ones(rows, 4))
""")
    status, out, err = command(file.name, "--json")
    found = json.loads(out)
    assert status == 0 and found["title"] == "step_explained.py:large" and "3 compilations" in err
    assert [s["types"] for s in found["specialisations"]] == [["tensor<2x4xf32>"], ["tensor<(x_0)x4xf32>"]]
    assert "compiled again: x is tensor<(x_0)x4xf32>" in found["specialisations"][1]["notes"][0]


def test_a_program_that_fails_is_explained_as_far_as_it_came(command: Any, file: Path) -> None:
    file.write_text("import mlc\nmlc.compile(lambda x: x + 1)(mlc.ones(3))\nraise ValueError('late')\n")
    status, out, err = command(file.name)
    assert status == 1 and "tensor" in out and "ValueError: late" in err
    file.write_text("raise ValueError('early')\n")
    status, out, err = command(file.name)
    assert (status, out) == (1, "") and "ValueError: early" in err


def test_a_program_that_ends_itself_and_takes_arguments(command: Any, file: Path) -> None:
    file.write_text("import sys\nimport mlc\n\nstep = mlc.compile(lambda x: x + len(sys.argv))\n"
                    "print(step(mlc.ones(3)))\nsys.exit(3)\n")
    assert command(file.name, "-o", "out.html", "--", "--steps", "2")[0] == 3 and Path("out.html").is_file()
    assert command(f"{file.name}:step", "--args", "f32[3]", "--line", "4")[0] == 0
    assert json.loads(command(file.name, "--json", "--", "--steps", "2")[1])["title"].startswith(file.name)


def test_a_module_of_layers_comes_from_the_line_that_makes_it(command: Any, file: Path) -> None:
    file.write_text("import mlc\n\nstep = mlc.nn.Sequential(mlc.nn.Linear(4, 4), mlc.nn.ReLU())\n")
    found = json.loads(command(f"{file.name}:step", "--args", "f32[2,4]", "--json")[1])
    assert {place[1] for op in found["ops"] for place in op["places"]} == {3}


def test_kernels_are_measured(command: Any, file: Path) -> None:
    """Those of a function that equal layers share run once for each; values in the arena are no kernels."""
    file.write_text("""import mlc
from mlc import nn

class Layer(nn.Module):
    def __init__(self):
        self.linear, self.norm = nn.Linear(24, 24), nn.LayerNorm(24)

    def forward(self, x):
        return x + nn.functional.gelu(self.norm(self.linear(x))) * 0.5 + nn.functional.softplus(x)

model = nn.Sequential(Layer(), Layer(), Layer())

def step(x: mlc.spec("B", 24)):
    return (model(x) ** 2).sum()
""")
    found = json.loads(command(f"{file.name}:step", "--measure", "--json", "--sizes", "B=7")[1])
    kernels = [k for k in found["kernels"] if not k["callee"]]
    shared = [k for k in kernels if k["function"] != "main"]
    assert len(shared) > 1 and {k["runs"] for k in shared} == {3}
    assert {k["runs"] for k in kernels if k not in shared} == {1} and all(k["measured"] > 0 for k in kernels)
    assert all(k["measured"] is None for k in json.loads(command(f"{file.name}:step", "--json")[1])["kernels"])
    assert re.search(r"time +runs +kernel", command(f"{file.name}:step", "--measure")[1])


@pytest.mark.parametrize("words, wanted", [
    ("step_explained.py:stop", "MLC0399.*did you mean step_explained.py:step"),
    ("step_explained.py:step --line 5", "MLC0391.*no operation comes from line 5.*step_explained.py:4"),
    ("step_explained.py:step --line other.py:2", "MLC0391.*no operation comes from other.py"),
    ("step_explained.py:step --line model", "MLC0391.*is no line"),
    ("step_explained.py:step --line 4 --json", "MLC0391.*two forms"),
    ("step_explained.py:step --all", "MLC0391.*--line"),
    ("step_explained.py:step --sizes C=3", "MLC0391.*there is no size C.*it has B"),
    ("step_explained.py:step -o missing/out.html", "MLC0393.*missing/out.html"),
    ("step_explained.py:step --target z80", "MLC0501"),
    ("step_explained.py:step --target cuda:sm_90 --roofline", "MLC0391.*measures this machine"),
    ("step_explained.py:step --target cuda:sm_90 --measure", "MLC0391.*measures this machine"),
    ("step_explained.py:step -- 3", "MLC0391.*only a Python program"),
    ("missing.py:step", "MLC0392.*missing.py"),
])
def test_mistakes_are_one_message(words: str, wanted: str, command: Any) -> None:
    status, out, err = command(*words.split())
    assert status == 2 and not out and err.startswith("error[") and re.search(wanted, err, re.S), err


def test_a_file_below_the_levels_of_kernels(command: Any, file: Path) -> None:
    Path("low.mlir").write_text("func.func @main(%x: i64) -> i64 {\n  %0 = arith.addi %x, %x : i64\n"
                                "  func.return %0 : i64\n}\n")
    found = json.loads(command("low.mlir", "--json")[1])
    assert found["levels"][0]["name"] == "trace" and not found["kernels"]
    assert [op["places"] for op in found["ops"] if op["name"] == "arith.addi"] == [[[0, 2, 3]]]


def test_work_of_kernels_is_counted_from_their_operations() -> None:
    module = parse_module("""
func.func @main(%x: tensor<6x4xf32>, %y: tensor<4x5xf32>) -> tensor<6x5xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
       : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  func.return %0 : tensor<6x5xf32>
}""", "product.mlir")
    assert [(k.flops, k.bytes) for k in of_text(module).kernels] == [(str(2 * 6 * 4 * 5), str(4 * (24 + 20 + 30)))]
