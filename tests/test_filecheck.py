"""FileCheck's own tests: each directive, captures, and what a failure says."""
from __future__ import annotations

import pytest

from tests.filecheck import CheckError, check, directives, is_literal, literal

OUTPUT = """\
module {
  func.func @f(%arg0: f32) -> f32 {
    %0 = arith.addf %arg0, %arg0 : f32
    %1 = arith.mulf %0, %0 : f32
    return %1 : f32
  }
  func.func @g(%arg0: f32) -> f32 {
    return %arg0 : f32
  }
}
"""

PASS = {
    "order": "// CHECK: @f\n// CHECK: addf\n// CHECK: return %1",
    "next": "// CHECK: addf\n// CHECK-NEXT: mulf\n// CHECK-NEXT: return",
    "next is the first line": "// CHECK-NEXT: module {",
    "same": "// CHECK: func.func @f\n// CHECK-SAME: %arg0\n// CHECK-SAME: -> f32",
    "not": "// CHECK: addf\n// CHECK-NOT: subf\n// CHECK: return",
    "not at the end": "// CHECK: @g\n// CHECK-NOT: mulf",
    "label": "// CHECK-LABEL: @f\n// CHECK-NOT: subf\n// CHECK-LABEL: @g\n// CHECK-NEXT: return %arg0",
    "label bounds not": "// CHECK-LABEL: @g\n// CHECK-NOT: mulf",
    "not before a label": "// CHECK-NOT: @g\n// CHECK-LABEL: @f\n// CHECK-LABEL: @g",
    "same after label": "// CHECK-LABEL: @g\n// CHECK-SAME: -> f32",
    "dag": "// CHECK-DAG: mulf\n// CHECK-DAG: addf\n// CHECK-NEXT: return",
    "regex": "// CHECK: arith.{{add|sub}}f %arg{{[0-9]+}}",
    "capture": "// CHECK: %[[A:.*]] = arith.addf\n// CHECK-NEXT: arith.mulf %[[A]], %[[A]]",
    "bare capture": "// CHECK: %[[A]] = arith.addf\n// CHECK: mulf %[[A]],",
    "capture used on its own line": "// CHECK: addf %[[A:[a-z0-9]+]], %[[A]] :",
    "capture anew": "// CHECK: %[[A:.*]] = arith.addf\n// CHECK: %[[A:.*]] = arith.mulf\n// CHECK: return %[[A]]",
    "label forgets captures": "// CHECK: -> [[A:f32]]\n// CHECK-LABEL: @g\n// CHECK: return %[[A]]",
    "blanks": "// CHECK:   %0   =    arith.addf",
    "other comment signs": "# CHECK: addf\n; CHECK: mulf",
}

FAIL = {
    "missing": ("// CHECK: subf", "line 1: CHECK: subf\nnot found"),
    "order": ("// CHECK: mulf\n// CHECK: addf", "line 2: CHECK: addf\nnot found"),
    "one line once": ("// CHECK: addf\n// CHECK: %arg0, %arg0", "line 2"),
    "next": ("// CHECK: addf\n// CHECK-NEXT: return", "line 2: CHECK-NEXT: return"),
    "same looks right": ("// CHECK: -> f32\n// CHECK-SAME: @f", "line 2: CHECK-SAME: @f"),
    "not": ("// CHECK: @f\n// CHECK-NOT: mulf\n// CHECK: return", "line 2: CHECK-NOT: mulf\nfound but forbidden"),
    "label bounds check": ("// CHECK-LABEL: @f\n// CHECK: return %arg0\n// CHECK-LABEL: @g", "line 2"),
    "label": ("// CHECK-LABEL: @h", "line 1: CHECK-LABEL: @h"),
    "dag takes distinct lines": ("// CHECK-DAG: addf\n// CHECK-DAG: addf", "line 2: CHECK-DAG: addf"),
    "not before dag": ("// CHECK-NOT: @f\n// CHECK-DAG: mulf\n// CHECK-DAG: addf", "line 1: CHECK-NOT: @f"),
    "capture": ("// CHECK: %[[A:.*]] = arith.addf\n// CHECK: return %[[A]]", "with [[A]] = 0"),
    "literal brackets": ("// CHECK: dense<[[1, 2]]>", "not found"),
    "bad regex": ("// CHECK: {{(}}", "not a pattern"),
    "captured twice": ("// CHECK: %[[A:.*]] = arith.addf %[[A:.*]]", "captured twice"),
    "unknown directive": ("// CHECK-NXT: addf", "no such directive: CHECK-NXT"),
    "empty": ("// CHECK:", "the pattern is empty"),
    "nothing to check": ("// about addf", "there is no CHECK line"),
    "misspelt": ("// CHECK: addf\n// CHEKC: subf", "line 2: // CHEKC: subf\nno such directive"),
    "in small letters": ("// CHECK: addf\n// Check-Next: subf", "no such directive"),
    "without a colon": ("// CHECK: addf\n// CHECK-NEXT subf", "no such directive"),
    "with a blank": ("// CHECK: addf\n// CHECK NEXT: subf", "no such directive"),
}


@pytest.mark.parametrize("test", PASS.values(), ids=PASS.keys())
def test_accepts(test: str) -> None:
    assert check(test, OUTPUT) is None


@pytest.mark.parametrize("test, message", FAIL.values(), ids=FAIL.keys())
def test_rejects(test: str, message: str) -> None:
    found = check(test, OUTPUT)
    assert found is not None
    assert message in found


def test_failure_shows_the_neighbourhood() -> None:
    assert check("// CHECK: mulf\n// CHECK-NEXT: addf", OUTPUT) == """\
line 2: CHECK-NEXT: addf
not found
the output, with the last match marked:
      func.func @f(%arg0: f32) -> f32 {
        %0 = arith.addf %arg0, %arg0 : f32
  >     %1 = arith.mulf %0, %0 : f32
        return %1 : f32
      }
      func.func @g(%arg0: f32) -> f32 {
        return %arg0 : f32
      }
    }"""


def test_failure_on_no_output() -> None:
    found = check("// CHECK: x", "")
    assert found is not None
    assert found.endswith("(empty)")


@pytest.mark.parametrize("line", ["dense<[[1, 2], [a]]>", "x {{y}} [[Z]] [[Z:.*]]", "[[[a]]]", "{{{a}}}", "a.b* (c)"])
def test_literal_matches_itself_only(line: str) -> None:
    assert is_literal(literal(line))
    assert check(f"// CHECK: {literal(line)}", line) is None
    assert check(f"// CHECK: {literal(line)}", line.replace("[", "(").replace("{", "(").replace(".", ",")) is not None


def test_is_literal() -> None:
    assert is_literal("dense<[[1, 2]]>")
    assert not is_literal("%[[A]]")
    assert not is_literal("{{.*}}")


def test_directives_say_where_they_stand() -> None:
    assert [(d.line, d.kind, d.pattern) for d in directives("x\n// CHECK: a\n\n  // CHECK-NOT:  b  ")] == [
        (2, "", "a"), (4, "-NOT", "b")]
    with pytest.raises(CheckError, match="line 1: CHECK-EMPTY"):
        directives("// CHECK-EMPTY:")
