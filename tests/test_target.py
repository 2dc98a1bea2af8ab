"""Targets and machine code: which processor is chosen, and what compile_object accepts and refuses."""

import subprocess
import sys

import pytest

from mlc.backends.cpu.targets import LEVELS, cpu_for, host, vector_bits_for
from mlc.backends.object_code import MAX_NESTING, assembly, check_nesting, compile_object, optimized_ir
from mlc.backends.target import Target, targets
from mlc.ir.diag import BackendError

V3, V4 = LEVELS["x86-64-v3"], LEVELS["x86-64-v4"]
DOUBLE = "define i64 @double(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


def names(target: Target) -> frozenset[str]:
    return frozenset(feature[1:] for feature in target.features if feature.startswith("+"))


def test_names() -> None:
    assert [Target.parse(name).name for name in ("host", *targets())] == ["host", *targets()]
    message = r"unknown target 'pentium'(.|\n)*host, x86-64-v2, x86-64-v3, x86-64-v4"
    with pytest.raises(BackendError, match=message) as caught:
        Target.parse("pentium")
    assert caught.value.code == "MLC0501"


def test_levels_are_ordered() -> None:
    assert V4.runs(V3) and not V3.runs(V4) and V3.runs(V3)
    assert (V3.vector_bits, V4.vector_bits) == (256, 512)
    assert V4.has("avx512f") and not V3.has("avx512f")


def test_processor_follows_from_features() -> None:
    """A hypervisor may mask the name, so only features decide; a server with AMX counts only if AMX is usable."""
    amx = names(V4) | {"amx-tile", "amx-bf16", "avx512fp16"}
    assert cpu_for(amx) == "sapphirerapids"
    assert cpu_for(amx - {"amx-bf16"}) == "x86-64-v4"
    assert cpu_for(names(V4) | {"sse4a"}) == "znver4"
    assert cpu_for(names(V3) | {"sse4a"}) == "x86-64-v3"
    assert cpu_for(frozenset({"sse2"})) == "x86-64"
    assert [vector_bits_for(features) for features in (amx, names(V3), frozenset({"sse2"}))] == [512, 256, 128]


def test_host_names_what_the_machine_lacks() -> None:
    """`cpu` implies features, so those that are missing must be switched off."""
    assert host() is host()
    assert all(feature[0] in "+-" for feature in host().features)
    assert host().has("sse2") and host().has("avx512f") is (host().vector_bits == 512)


def test_targets_are_known_without_llvm() -> None:
    program = "import sys, mlc.backends.object_code, mlc.backends.link, mlc.backends.load as _; " \
              "from mlc.backends.target import Target; Target.parse('x86-64-v3'); sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_compiles_at_every_level(opt_level: int) -> None:
    assert compile_object(DOUBLE, V3, opt_level) == compile_object(DOUBLE, V3, opt_level)
    assert "double:" in assembly(DOUBLE, V3, opt_level)


def test_features_reach_the_code() -> None:
    text = "define void @f(ptr %p) #0 {\n  %v = load <16 x float>, ptr %p\n  %w = fadd <16 x float> %v, %v\n" \
           "  store <16 x float> %w, ptr %p\n  ret void\n}\nattributes #0 = { \"min-legal-vector-width\"=\"512\" " \
           "\"prefer-vector-width\"=\"512\" }\n"
    assert "zmm" in assembly(text, V4) and "zmm" not in assembly(text, V3)


def test_division_leaves_the_loop() -> None:
    """Code generation does not hoist an integer division by itself; level 2 does, level 1 is for code without one."""
    text = """
define void @f(ptr %p, i64 %n, i64 %a, i64 %b) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %done
body:
  %q = sdiv i64 %a, %b
  %s = add i64 %q, %i
  %at = getelementptr i64, ptr %p, i64 %i
  store i64 %s, ptr %at
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
"""
    ir = optimized_ir(text, V3)
    loop = next(block for block in ir.split("\n\n") if "store i64" in block)
    assert ir.count("sdiv") == 1 and "sdiv" not in loop


@pytest.mark.parametrize(("text", "code"), [
    ("define i64 @f( {", "MLC0511"),
    ("define i64 @f() {\n  ret i32 0\n}", "MLC0511"),
    ("define void @f() {\na:\n  br label %b\nb:\n  %x = add i64 %y, 1\n  %y = add i64 %x, 1\n  ret void\n}", "MLC0511"),
    ("; \0", "MLC0511"),
    (f"@g = external global {'{' * 20_000}i32{'}' * 20_000}", "MLC0510"),
    ("@g = external global " + "{" * 20_000, "MLC0510"),
    ("@g = global i64 " + "add (i64 1, i64 " * 20_000, "MLC0510"),
])
def test_refused_text(text: str, code: str) -> None:
    """Also text that would kill the process if LLVM saw it."""
    with pytest.raises(BackendError) as caught:
        compile_object(text, V3)
    assert caught.value.code == code


def test_nesting_limit() -> None:
    check_nesting("{" * MAX_NESTING + "}" * MAX_NESTING)
    check_nesting("{}[]<>()" * 1000)
    check_nesting('@s = constant [3 x i8] c"{{{"' + " ; {{{" * MAX_NESTING)
    with pytest.raises(BackendError):
        check_nesting("{[" * (MAX_NESTING // 2) + "<>" + "]}" * (MAX_NESTING // 2))


def test_opt_level_is_checked() -> None:
    with pytest.raises(BackendError, match="opt_level"):
        compile_object(DOUBLE, V3, 4)
