"""The files of extension modules: docstrings and stubs, portability, and the commands that write them."""
from __future__ import annotations

import ast
import ctypes
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import extension
from mlc.backends.combine import combined
from mlc.backends.cpu.targets import ARM, LEVELS, host
from mlc.backends.cpu.threads import processors
from mlc.backends.emit_llvm import emit
from mlc.backends.extension import container, processor
from mlc.backends.extension.module import glue
from mlc.backends.link import link, read_objects
from mlc.backends.load import load as load_library
from mlc.backends.machines import AARCH64, Kind, patched
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.ir.diag import BackendError, UserError
from mlc.ir.machine import x86_64
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.tools.cli import main
from tests import extension_model as model
from tests.test_extension import RNG, SMALL, W, X, same

ROOT = Path(__file__).parent.parent
MODEL = "tests/extension_model.py"
NAMES = ["net", "plain", "pick", "tree", "updated", "long_work"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extension") / "several.so"
    extension.write(path, {name: model.FUNCTIONS[name] for name in NAMES}, cpu=["x86-64-v3"])
    return path


@pytest.fixture(scope="module")
def several(built: Path) -> Any:
    return mlc.load(built)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of one small function."""
    path = tmp_path_factory.mktemp("net") / "net.so"
    extension.write(path, {"plain": model.FUNCTIONS["plain"]}, cpu=["x86-64-v4", "x86-64-v3"])
    return path


# -- what it says of itself -------------------------------------------------------------------------------------------
def test_docstrings_and_stub(tmp_path: Path, several: Any) -> None:
    assert several.plain.__text_signature__ == "(x, w)"
    assert several.plain.__doc__ == "A layer.\n\nx: float32[B, 16]\nw: float32[16, 4]\nreturns: float32[B, 4]"
    assert "params['rest'][1]: None" in several.tree.__doc__ and "returns[3]: 'three'" in several.tree.__doc__
    assert several.updated.__doc__.endswith("The results take the memory of params['w'].")
    assert main(["compile", f"{MODEL}:tree,scaled", "--emit=stub", "-o", str(tmp_path / "both.pyi")]) == 0
    text = (tmp_path / "both.pyi").read_text()
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert list(functions) == ["tree", "scaled"]
    assert ast.unparse(functions["scaled"].args) == \
        "x: NDArray[np.float32], factor: NDArray[np.float32] | float, *, times: NDArray[np.int32] | int"
    assert ast.unparse(functions["tree"].args).startswith(
        "params: dict[str, NDArray[np.float32] | tuple[list[NDArray[np.float32] | float], None]], x: NDArray")


# -- the file ---------------------------------------------------------------------------------------------------------
def test_identical_input_gives_identical_bytes(net: Path, tmp_path: Path) -> None:
    """In another process too, which hashes strings otherwise and has no cache."""
    again = tmp_path / "net.so"
    assert main(["compile", f"{MODEL}:plain", "-o", str(again)]) == 0
    first = again.read_bytes()
    assert again.with_suffix(".pyi").exists()
    again.unlink()
    subprocess.run([sys.executable, "-m", "mlc.tools.cli", "compile", f"{MODEL}:plain", "-o", str(again)],
                   check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "7", "MLC_CACHE": "0", "PATH": ""})
    assert again.read_bytes() == first


def test_damaged_files_are_refused_before_their_code_runs(net: Path, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> None:
        raise AssertionError("code of a damaged file runs")
    monkeypatch.setattr(ExtensionFileLoader, "create_module", never)
    data, bad = net.read_bytes(), tmp_path / "net.so"
    generator = random.Random(0)
    for _ in range(200):
        changed = bytearray(data)
        changed[generator.randrange(4, len(data))] ^= 1 << generator.randrange(8)
        bad.write_bytes(changed)
        with pytest.raises(UserError, match=r"MLC0571"):
            mlc.load(bad)
    for length in (*range(0, len(data), len(data) // 50), len(data) - 1):
        bad.write_bytes(data[:length])
        with pytest.raises(UserError, match=r"MLC0571"):
            mlc.load(bad)
    bad.write_bytes(data + b"x")
    with pytest.raises(UserError, match=r"MLC0571"):
        mlc.load(bad)
    assert main(["verify", str(bad)]) == 1


def test_a_shared_object_of_others_is_refused(tmp_path: Path, net: Path) -> None:
    other = tmp_path / "other.so"
    data = net.read_bytes()
    head = container.unpack(data)
    other.write_bytes(data[:data.rindex(b'{"beside"')])
    with pytest.raises(UserError, match="does not end as mlc compile writes"):
        mlc.load(other)
    assert head.name == "net" and head.targets == (LEVELS["x86-64-v3"], LEVELS["x86-64-v4"])


def test_weights_beside_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "far.so"
    assert main(["compile", f"{MODEL}:net", "-o", str(path), "--cpu=x86-64-v3", "--weights=beside"]) == 0
    beside = path.with_suffix(".safetensors")
    want = model.model(SMALL)
    assert same(mlc.load(path).net(SMALL), want)
    assert main(["verify", str(path)]) == 0 and "in far.safetensors" in capsys.readouterr().out
    content = bytearray(beside.read_bytes())
    content[-5] ^= 4
    for wrong, why in ((bytes(content), "the checksum of far.safetensors is wrong"),
                       (bytes(content[:-8]), r"far.safetensors has \d+ bytes, \d+ were written")):
        beside.write_bytes(wrong)
        with pytest.raises(UserError, match=f"MLC0571.*{why}"):
            mlc.load(path)
        spec = importlib.util.spec_from_file_location("far", path)
        assert spec is not None and spec.loader is not None
        with pytest.raises(ImportError, match=r"far.safetensors is damaged, or not what the module was compiled with"):
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
    beside.unlink()
    with pytest.raises(UserError, match=r"MLC0392.*far.safetensors: No such file"):
        mlc.load(path)


def test_the_predictor_is_small(tmp_path: Path) -> None:
    path = tmp_path / "net.so"
    extension.write(path, {"net": model.net})
    held = sum(a.nbytes for a in extension.arrays(model.model).values())
    assert path.stat().st_size - held < 100_000
    assert main(["info", str(path)]) == 0


def test_importing_needs_only_numpy(built: Path) -> None:
    """How long it takes is in tests/test_extension_alone.py."""
    program = (f"import sys, numpy\nsys.path.insert(0, {str(built.parent)!r})\nbefore = set(sys.modules)\n"
               "import several\nprint(*sorted(set(sys.modules) - before))")
    out = subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True).stdout
    assert out == "several\n"


@pytest.mark.parametrize("setting, wanted", [("1", 1), ("3", 3), (" ", processors()), ("0", processors()),
                                          (None, processors())])
def test_how_many_threads_there_are(built: Path, setting: str | None, wanted: int) -> None:
    program = (f"import os, sys, numpy as np\nsys.path.insert(0, {str(built.parent)!r})\nimport several\n"
               "x = np.ones((400, 400), np.float32)\nbefore = len(os.listdir('/proc/self/task'))\n"
               "several.long_work(x)\nprint(len(os.listdir('/proc/self/task')) - before + 1)")
    environment = {k: v for k, v in os.environ.items() if k != "MLC_NUM_THREADS"}
    environment |= {"OPENBLAS_NUM_THREADS": "1"} | ({} if setting is None else {"MLC_NUM_THREADS": setting})
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert int(out.stdout) == wanted


# -- what the system's loader sees ------------------------------------------------------------------------------------
def readelf(path: Path, *options: str) -> str:
    program = shutil.which("readelf")
    if program is None:
        pytest.skip("there is no readelf here")
    done = subprocess.run([program, "-W", *options, str(path)], capture_output=True, text=True, check=True)
    assert not done.stderr and "Warning" not in done.stdout, done.stderr
    return done.stdout


def test_the_file_needs_no_library_and_no_version_of_one(built: Path) -> None:
    """So any glibc will do that has the functions it imports: they are there since 2.2.5, the oldest for x86-64."""
    text = readelf(built, "-a")
    assert "NEEDED" not in text and "VERNEED" not in text and "No version information found" in text
    symbols = [line.split() for line in readelf(built, "--dyn-syms").splitlines() if " UND " in line]
    needed = {s[7] for s in symbols if len(s) > 7 and s[4] == "GLOBAL"}
    assert needed <= {"memcpy", "memset", "memmove", "syscall", "getenv", "pthread_create"}
    optional = {s[7] for s in symbols if len(s) > 7 and s[4] == "WEAK"}
    assert "PyModuleDef_Init" in optional and all(name.startswith(("Py", "_Py")) for name in optional)


def test_every_symbol_is_in_the_stable_abi_of_3_11() -> None:
    """By the list of a Python that is here: the functions and variables of its limited API."""
    from mlc.backends.extension import python
    for name in python.EXTERNALS:
        ctypes.c_char.in_dll(ctypes.pythonapi, name)


def test_aarch64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "arm.so"
    assert main(["compile", f"{MODEL}:net,pick", "-o", str(path), "--target=aarch64", "--emit=ext,header"]) == 0
    assert container.machine(path.read_bytes()) == "aarch64" and path.with_suffix(".h").exists()
    with pytest.raises(BackendError, match=r"MLC0562.*this machine cannot run code made for aarch64"):
        mlc.load(path)
    assert main(["verify", str(path)]) in (1, 2) and main(["verify", str(path), "--elsewhere"]) == 0
    text = readelf(path, "-a")
    assert "AArch64" in text and "R_AARCH64_RELATIVE" in text and "unrecognized" not in text
    assert main(["info", str(path)]) == 0 and re.search("runs on this machine +no", capsys.readouterr().out)


@pytest.mark.parametrize("kind, old, target, place, want", [
    (Kind("branch", 4), 0x94000000, 0x1000, 0x2000, 0x97FFFC00),       # bl .-0x1000
    (Kind("page", 4), 0x90000000, 0x12345, 0x1000, 0xB0000080),        # adrp x0, 0x11000 further
    (Kind("low", 4), 0x91000000, 0x12345, 0, 0x910D1400),              # add x0, x0, #0x345
    (Kind("low", 4, scale=3), 0xF9400000, 0x12348, 0, 0xF941A400),     # ldr x0, [x0, #0x348]
    (Kind("low", 4, scale=3), 0xF9400000, 0x12345, 0, None),
    (Kind("branch", 4), 0x94000000, 1 << 28, 0, None), (Kind("page", 4), 0x90000000, 1 << 33, 0, None),
    (Kind("relative", 4), 0, 0, 16, 0xFFFFFFF0), (Kind("relative", 4), 0, 1 << 31, 0, None),
])
def test_references_in_instructions(kind: Kind, old: int, target: int, place: int, want: int | None) -> None:
    assert patched(kind, old, target, place) == want
    assert AARCH64.stub_size == len(AARCH64.stub(0x1000, 0x20008))


# -- processors -------------------------------------------------------------------------------------------------------
def chosen(targets: list[Target]) -> int:
    base = Target("x86-64", LEVELS["x86-64-v2"].triple, "x86-64", (), x86_64(128))
    code = link(compile_object(processor.chooser(targets), base, 1), ["mlc_choose_level"], frozenset({"syscall"}))
    answer: int = load_library(code).function("mlc_choose_level", ctypes.c_int32, [])()
    return answer


@pytest.mark.parametrize("name", LEVELS)
def test_an_architecture_level_needs_processors_that_support_it(name: str) -> None:
    assert chosen([LEVELS[name]]) == (1 if host().runs(LEVELS[name]) else -1)


def test_the_best_level_is_chosen() -> None:
    fits = [i for i, level in enumerate(LEVELS.values(), 1) if host().runs(level)]
    assert chosen(list(LEVELS.values())) == max(fits)


def test_every_feature_of_a_level_is_checked() -> None:
    for level in LEVELS.values():
        assert len(processor.masks(level)) >= 2
    with pytest.raises(BackendError, match=r"MLC0501.*there is no run-time check for the processor feature 3dnow"):
        processor.masks(Target("old", "x86_64", "k6", ("+3dnow",), x86_64(128)))


# -- C ----------------------------------------------------------------------------------------------------------------
def test_a_c_program(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    digits = tmp_path / "digits.py"
    digits.write_text("import mlc\nfrom mlc import nn\nmlc.manual_seed(1)\n"
                      "model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))\n"
                      "predict = mlc.compile(model, args=[mlc.spec('B', 64)])\n")
    out = str(tmp_path / "predictor.so")
    assert main(["compile", f"{digits}:predict", "--emit=ext,header", "-o", out]) == 0
    program = tmp_path / "predict"
    subprocess.run([compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", str(tmp_path),
                    str(ROOT / "examples" / "predict.c"), out, f"-Wl,-rpath,{tmp_path}", "-o", str(program)],
                   check=True)
    images = RNG.random((20, 64)).astype(np.float32)
    images.tofile(tmp_path / "images.f32")
    done = subprocess.run([str(program), str(tmp_path / "images.f32")], check=True, capture_output=True, text=True)
    assert [int(n) for n in done.stdout.split()] == mlc.load(out).predict(images).argmax(1).tolist()


def test_reserved_names_of_c_are_avoided(tmp_path: Path) -> None:
    header = tmp_path / "all.h"
    (tmp_path / "model.py").write_text("import mlc\ndef double(int: mlc.spec(), *, B: mlc.spec('B')):\n"
                                       "    return (int + B).sum()\ndef five():\n    return mlc.ones(5) + 0\n")
    assert main(["compile", f"{tmp_path}/model.py:double,five", "--emit=ext,header", "-o",
                 str(tmp_path / "all.so")]) == 0
    text = header.read_text()
    assert "int32_t double_(struct mlc_context *context, int64_t B, const float *int_, const float *B_, " in text
    assert "int32_t five(struct mlc_context *context, float *result)" in text
    module = mlc.load(tmp_path / "all.so")
    assert same(module.five(), np.ones(5, np.float32)) and module.double(1, B=X[0, :2]).shape == ()


def test_headers_are_c(tmp_path: Path, built: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    header = tmp_path / "all.h"
    names = "net,pick,halves,scaled,tree,updated,through,flips"
    assert main(["compile", f"{MODEL}:{names}", "--emit=header", "-o", str(header), "--weights=beside"]) == 0
    text = header.read_text()
    assert "static inline int32_t halves(struct mlc_context *context, int64_t B, const float *x, const float *y, " \
        "float *result) {" in text
    assert "Place 0 of the record: extension_model.py:" in text and 'ALL_WEIGHTS_SHA256 "' in text
    for language in ("c", "c++"):
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language, str(header)],
                       check=True)


def test_emitted_modules_are_well_formed() -> None:
    functions = [extension.source(model.FUNCTIONS[name], name=name) for name in NAMES]
    weights = extension.weights_of("net", functions, "inside")
    emitted, tables = glue("net", [f.function for f in functions], ["x86-64-v3"], weights)
    verify(emitted)
    assert to_text(parse_module(to_text(emitted), "glue.mlir")) == to_text(emitted)
    assert "inttoptr" not in emit(emitted, LEVELS["x86-64-v2"]) + tables                # no address of this process


# -- the command ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("words, code", [
    (["{file}:plain", "-o", "my-net.so"], "MLC0573"), (["{file}:plain", "--emit=ext,asm", "-o", "n.so"], "MLC0391"),
    (["{file}", "-o", "n.so"], "MLC0399"), (["{file}:absent", "-o", "n.so"], "MLC0399"),
    (["{file}:trees", "-o", "n.so"], "MLC0381"), (["{file}:plain", "-o", "n.so", "--cpu=i386"], "MLC0501"),
    (["{file}:plain", "-o", "n.so", "--cpu=x86-64-v3,aarch64"], "MLC0391"),
    (["{file}:plain", "-o", "n.so", "--cpu=x86-64-v3", "--target=aarch64"], "MLC0391"),
    (["{file}:plain", "-o", "n.so", "--target=cuda:sm_90"], "MLC0391"),
    (["{file}:plain", "-o", "n.so", "--args", "{{w: f32"], "MLC0397"),
    (["{file}:plain", "-o", "n.so", "--args", "f32[2,x y]"], "MLC0397"),
    (["{file}:plain", "-o", "n.so", "--args", "f32[2]"], "MLC0397"),
])
def test_mistakes_on_the_command_line(words: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", *(w.format(file=MODEL) for w in words)]) in (1, 2)
    assert f"error[{code}]" in capsys.readouterr().err


def test_types_of_trees_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "trees.so"
    assert main(["compile", f"{MODEL}:trees", "-o", str(path), "--cpu=x86-64-v3",
                 "--args", "{w: f32[3,2], rest: ([f32[2]], f32)}, f32[N,3]"]) == 1      # the function wants None there
    assert main(["compile", f"{MODEL}:layered", "-o", str(path), "--cpu=x86-64-v3",
                 "--args", "{w: f32[3,2], b: [f32[2], (f32,)]}, f32[N,3]"]) == 0
    w, b, x = X[:3, :2], X[0, :2], X[:, :3]
    got = mlc.load(path).layered({"w": w, "b": [b, (np.float32(2),)]}, x)
    assert np.allclose(got, (x @ w + b) * 2)


def test_weights_that_do_not_fit_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [extension.source(model.net)]
    monkeypatch.setattr(extension, "MOST_INSIDE", 100)
    with pytest.raises(UserError, match=r"MLC0574.*the weights are \d+ bytes, and code reaches 100 inside the file"):
        extension.weights_of("net", sources, "inside")
    assert extension.weights_of("net", sources, "beside").beside == "net.safetensors"
    with pytest.raises(UserError, match=r"MLC0574.*weights='above' is no place"):
        extension.write("net.so", model.net, weights="above")


def größer(x: Any) -> Any:
    return x + 1


def test_unsupported_functions_are_refused(tmp_path: Path) -> None:
    x = mlc.spec(2)
    norm = mlc.nn.BatchNorm1d(2)
    for f, args, why in (
            (lambda x, mode: x, [x, "fast"], "mode of function is 'fast', and a module that is imported"),
            (lambda x: "text", [x], "computes nothing"), (norm, [mlc.spec(3, 2)], "gives new values to buffers"),
            (lambda *xs: xs[0] + xs[1], [x, x], "takes 0 positional arguments"),
            (größer, [x], "größer is no name for a function of C"),
            (lambda x: {(1, 2): x + x}, [x], "has a key that is neither a string nor an integer")):
        with pytest.raises(UserError, match=rf"MLC0(574|380).*{why}"):
            extension.source(f, args)


def test_modules_are_imported_by_name(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(net.parent))
    module: ModuleType = __import__("net")
    assert Path(str(module.__file__)) == net and same(module.plain(X, W), model.FUNCTIONS["plain"](X, W))


def test_c_programs_pass_the_path_of_external_weights(tmp_path: Path) -> None:
    path = tmp_path / "far.so"
    extension.write(path, {"net": model.net}, cpu=["x86-64-v3"], weights="beside")
    library, out = ctypes.CDLL(str(path)), np.zeros((4, 3), np.float32)
    context = (ctypes.c_int64 * 4)()
    arena = np.zeros(1 << 16, np.uint8)
    context[0], context[1] = arena.ctypes.data + -arena.ctypes.data % 64, arena.size - 64
    arrays = [(ctypes.c_void_p * 1)(a.ctypes.data) for a in (SMALL, out)]
    arguments = context, arrays[0], (ctypes.c_int64 * 1)(4), arrays[1]
    assert library.net_entry(*arguments) == 4
    weights = path.with_suffix(".safetensors").read_bytes()
    assert library.far_use_weights(weights, ctypes.c_int64(len(weights) - 1)) == 1
    assert library.far_use_weights(weights, ctypes.c_int64(len(weights))) == 0
    assert library.net_entry(*arguments) == 0 and same(out, model.model(SMALL))


def test_objects_of_two_machines_do_not_join() -> None:
    objects = [compile_object(f'target triple = "{t.triple}"\ndefine i32 @f{i}() {{\n  ret i32 {i}\n}}\n', t, 1)
               for i, t in enumerate((LEVELS["x86-64-v3"], ARM["aarch64"]))]
    with pytest.raises(BackendError, match=r"MLC0521.*objects for AArch64 and x86-64 together"):
        combined([read_objects(obj) for obj in objects])
