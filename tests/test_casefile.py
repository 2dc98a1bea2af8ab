"""How case files are read, compared and blessed. What their tests do to the compiler, the cases themselves show."""
from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.arrays import difference, random_array
from tests.casefile import (
    CaseError,
    bless_file,
    blessed,
    check_block,
    first_difference,
    is_blessed,
    parse_case,
    run_test,
)
from tests.filecheck import check

CASE = """\
// test: roundtrip
// test: pass cse fuse{max=3 by=cost}
// test: run interp
// tolerance: 1e-3
// sizes: B=4 N=8
// Any other words.

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32>
// run: @f([1, -inf]) == [2.5, nan]
// -----
// run: @g(1, true) ~= (3, [[], []])
func.func @g()
// CHECK: @g
"""

BAD = {
    "empty file": ("", "x.mlir:1: the first line is not"),
    "no header": ("func.func @f()", "x.mlir:1: the first line is not"),
    "header too late": ("// words\n// test: verify", "x.mlir:1: the first line is not"),
    "unknown test": ("// test: optimise", "x.mlir:1: no such test: 'optimise'"),
    "no pass": ("// test: pass", "names no pass"),
    "words": ("// test: roundtrip twice", "does not take 'twice'"),
    "way to run": ("// test: run gpu", "does not take 'gpu'"),
    "test inside": ("// test: verify\nf\n// test: run", "x.mlir:3: `// test:` belongs above"),
    "option inside": ("// test: verify\n// -----\n// sizes: B=3", "x.mlir:3: `// sizes:` belongs above"),
    "tolerance": ("// test: verify\n// tolerance: low", "x.mlir:2: `// tolerance:` wants `bits` or a number"),
    "sizes": ("// test: verify\n// sizes: B", "wants `B=4 N=8`"),
    "meaning": ("// test: pass cse\n// meaning: none", "wants `none, <reason>`"),
    "twice": ("// test: run\n// tolerance: 1\n// tolerance: 2", "x.mlir:3: a second `// tolerance:`"),
    "error unused": ("// test: roundtrip\nf // error: x", "x.mlir:2: `// error:` needs"),
    "two errors": ("// test: verify\nf // error: x\ng // error: y", "x.mlir:3: a module stops at its first error"),
    "empty error": ("// test: verify\nf // error:", "x.mlir:2: `// error:` without a text"),
    "parses": ("// test: parse-error\nf", "has no `// error:`"),
    "run unused": ("// test: verify\n// run: @f() == 1", "x.mlir:2: `// run:` needs"),
    "nothing to run": ("// test: run\nf", "without a `// run:` line"),
    "not a call": ("// test: run\n// run: f(1) == 2", "x.mlir:2: not of the form"),
    "not a literal": ("// test: run\n// run: @f(open(1)) == 2", "x.mlir:2: not a literal: open(1)"),
    "not an expression": ("// test: run\n// run: @f(1 2) == 2", "x.mlir:2: "),
    "ambiguous CHECK": ("// test: pass cse\n// test: pass dce\n// CHECK: x", "exactly one"),
    "CHECK unused": ("// test: verify\n// CHECK: x", "CHECK lines need"),
}


def test_reads_all_of_a_case() -> None:
    case = parse_case(CASE, "x.mlir")
    assert [str(t) for t in case.tests] == ["roundtrip", "pass cse fuse{max=3 by=cost}", "run interp"]
    assert case.tests[1].words == ("cse", "fuse{max=3 by=cost}")
    assert (case.tolerance, case.sizes) == (1e-3, {"B": 4, "N": 8})
    f, g = case.chunks
    assert (f.checks, g.checks) == (False, True)
    assert (f.calls[0].name, f.calls[0].args, f.calls[0].exact) == ("f", [[1, -math.inf]], True)
    assert f.calls[0].results[0][0] == 2.5
    assert math.isnan(f.calls[0].results[0][1])
    assert (g.calls[0].args, g.calls[0].exact, g.calls[0].results) == ([1, True], False, [3, [[], []]])


@pytest.mark.parametrize("type, values", [("tensor<i32>", "2) == 2.9"), ("tensor<i8>", "1) == 257"),
                                          ("tensor<2xi1>", "[true, true]) == [7, -3]"), ("tensor<i8>", "300) == 44")])
def test_values_that_a_type_lacks_are_no_literals_of_it(type: str, values: str) -> None:
    case = parse_case(f"// test: run interp\nfunc.func @f(%x: {type}) -> {type} {{\n  func.return %x : {type}\n}}\n"
                      f"// run: @f({values}\n", "x.mlir")
    with pytest.raises(CaseError, match="is no value of"):
        run_test(case, case.tests[0], case.chunks[0])


def test_modules_keep_their_line_numbers() -> None:
    _, g = parse_case(CASE).chunks
    assert g.text.split("\n")[11] == CASE.split("\n")[11] == "func.func @g()"
    assert "@f" not in g.text


def test_errors_name_the_line_they_stand_on_or_point_to() -> None:
    case = parse_case("// test: verify\nf // error: no f\n// -----\ng\n// error@-1: no g\n// -----\nh")
    assert [chunk.errors for chunk in case.chunks] == [((2, "no f"),), ((4, "no g"),), ()]


@pytest.mark.parametrize("line, meant", [
    ("// CHEKC: add", "CHECK"), ("  // check: add", "CHECK"), ("// tset: run", "test"), ("// rum: @f() == 1", "run"),
    ("// eror: no f", "error"), ("// tolerence: bits", "tolerance"), ("// CHECK add", "CHECK")])
def test_misspelt_comments_are_found(line: str, meant: str) -> None:
    with pytest.raises(CaseError, match=f"3: .*is `// {meant}:` meant"):
        parse_case(f"// test: roundtrip\nf\n{line}\n// a note: as there are many", "x.mlir")


@pytest.mark.parametrize("text, message", BAD.values(), ids=BAD.keys())
def test_rejects(text: str, message: str) -> None:
    with pytest.raises(CaseError) as e:
        parse_case(text, "x.mlir")
    assert message in str(e.value)


def test_meaning_may_be_left_out_with_a_reason() -> None:
    assert parse_case("// test: pass cse\n// meaning: none, needs a GPU").uninterpreted == "needs a GPU"


# -- comparing --------------------------------------------------------------------------------------------------------
def test_difference_says_where() -> None:
    a, b = np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 2], [3, 5]], np.float32)
    assert difference(a, a, None) is None
    assert difference(a, b, None) == "4.0 in place of 5.0 at [1, 1] (1 of 4 differ)"
    assert difference(a, a.astype(np.float64), None) == "float32[2, 2] in place of float64[2, 2]"
    assert difference(a, a[0], None) == "float32[2, 2] in place of float32[2]"
    assert difference(a[:0], b[:0], None) is None


def test_difference_follows_the_tolerance() -> None:
    one = np.float32(1)
    near = np.nextafter(one, np.float32(2))
    assert difference(near, one, None) is None
    assert difference(near, one, "bits") is not None
    assert difference(np.float32(1.01), one, 0.1) is None
    assert difference(np.int32(2), np.int32(1), 10.0) is not None
    assert difference(np.asarray(1.01, ml_dtypes.bfloat16), np.asarray(1, ml_dtypes.bfloat16), None) is None


def test_difference_on_special_values() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0])
    assert difference(values, values, None) is None
    assert difference(values, values, "bits") is None
    assert difference(np.float32(-0.0), np.float32(0.0), None) is None
    assert difference(np.float32(-0.0), np.float32(0.0), "bits") is not None
    assert difference(np.complex64(complex(1, np.inf)), np.complex64(1), None) is not None


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_random_arrays_repeat(name: str, shape: tuple[int, ...]) -> None:
    one, two = (random_array(np.random.default_rng(7), shape, np.dtype(name)) for _ in range(2))
    assert one.shape == shape and one.dtype == np.dtype(name)
    assert difference(one, two, "bits") is None


def test_first_difference() -> None:
    assert first_difference("a\nb", "a\nc") == "line 2\n  first:  b\n  second: c"
    assert first_difference("a\nb", "a") == "line 2\n  first:  b\n  second: (none)"


# -- blessing ---------------------------------------------------------------------------------------------------------
PRINTED = """\
func.func @f() -> tensor<1x1xf32> {
  %0 = tensor.constant dense<[[1.0]]> : tensor<1x1xf32>

  return %0 : tensor<1x1xf32>
}
"""


def test_a_block_describes_what_was_printed() -> None:
    block = "\n".join(check_block(PRINTED))
    assert check(block, PRINTED) is None
    assert is_blessed(block)
    assert check(block, PRINTED.replace("1.0", "2.0")) is not None
    assert check(block, PRINTED.replace("  return", "  x\n  return")) is None      # after an empty line: CHECK
    assert check(block, PRINTED.replace("  %0", "  x\n  %0")) is not None


@pytest.mark.parametrize("text, may", [
    ("// CHECK:", True),
    ("// CHECK: a\n// CHECK-NEXT: b", True),
    ("func.func @f()", False),
    ("// CHECK:\n// CHECK: a", False),
    ("// CHECK: a\n// CHECK-NOT: b", False),
    ("// CHECK: %[[A]]", False),
    ("// CHECK-LABEL: a", False),
])
def test_only_its_own_lines_are_blessed(text: str, may: bool) -> None:
    assert is_blessed(text) is may


def test_bless_replaces_one_module_and_keeps_the_rest(tmp_path: Path) -> None:
    text = "// test: pass cse\nf\n// CHECK: old\n// -----\ng\n// CHECK: a\nmore\n// CHECK-NEXT: b\nend\n"
    new = "// test: pass cse\nf\n// CHECK: old\n// -----\ng\n// CHECK:      x\n// CHECK-NEXT:   y\nmore\nend\n"
    assert blessed(text, 1, "x\n  y\n") == new
    assert blessed(new, 1, "x\n  y\n") == new
    path = tmp_path / "case.mlir"
    path.write_text(text)
    bless_file(path, 1, "x\n  y\n")
    assert path.read_text() == new
    assert list(tmp_path.iterdir()) == [path]
