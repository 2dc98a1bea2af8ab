"""Entries written in LLVM IR by hand, for tests of what surrounds compiled code: calls, checks and reports."""
from __future__ import annotations

from functools import cache

from mlc.backends import object_code
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Executable, load_object
from mlc.ir.abi import Interface
from mlc.ir.parser import Parser
from mlc.ir.types import FunctionType


def _head(name: str, inputs: int, results: int) -> str:
    """The first lines of an entry, with the data pointers %x0, %x1, ... and %y0, %y1, ..."""
    out = f"define i32 @{name}_entry(ptr %ctx, ptr %args, ptr %sizes, ptr %results) {{\nstart:\n"
    for letter, array, count in (("x", "args", inputs), ("y", "results", results)):
        for i in range(count):
            out += f"  %{letter}p{i} = getelementptr ptr, ptr %{array}, i64 {i}\n  %{letter}{i} = load ptr, " \
                   f"ptr %{letter}p{i}\n"
    return out


def elementwise(name: str, inputs: int, type: str, body: str, count: str = "  %n = load i64, ptr %sizes\n",
                results: int = 1) -> str:
    """@name_entry: `%r = body(%a0, %a1, ...)` for each of `%n` elements, stored in every result."""
    load = "".join(f"  %q{i} = getelementptr {type}, ptr %x{i}, i64 %i\n  %a{i} = load {type}, ptr %q{i}\n"
                   for i in range(inputs))
    store = "".join(f"  %s{k} = getelementptr {type}, ptr %y{k}, i64 %i\n  store {type} %r, ptr %s{k}\n"
                    for k in range(results))
    return (_head(name, inputs, results) + count +
            "  %empty = icmp eq i64 %n, 0\n  br i1 %empty, label %done, label %loop\n"
            "loop:\n  %i = phi i64 [0, %start], [%j, %loop]\n" + load + body + store +
            "  %j = add i64 %i, 1\n  %more = icmp ult i64 %j, %n\n  br i1 %more, label %loop, label %done\n"
            "done:\n  ret i32 0\n}\n")


ADD = "  %r = fadd float %a0, %a1\n"
TWO_SIZES = "  %n0 = load i64, ptr %sizes\n  %mp = getelementptr i64, ptr %sizes, i64 1\n  %m = load i64, ptr %mp\n"

# y = 2 * x by way of the arena, which must hold x.
ARENA = _head("arena", 1, 1) + """  %n = load i64, ptr %sizes
  %bytes = mul i64 %n, 4
  %need = getelementptr i8, ptr %ctx, i64 16
  store i64 %bytes, ptr %need
  %have = getelementptr i8, ptr %ctx, i64 8
  %capacity = load i64, ptr %have
  %small = icmp ult i64 %capacity, %bytes
  br i1 %small, label %refuse, label %run
refuse:
  ret i32 1
run:
  %arena = load ptr, ptr %ctx
  call void @llvm.memcpy.p0.p0.i64(ptr %arena, ptr %x0, i64 %bytes, i1 false)
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %run], [%j, %loop]
  %p = getelementptr float, ptr %arena, i64 %i
  %v = load float, ptr %p
  %w = fadd float %v, %v
  %q = getelementptr float, ptr %y0, i64 %i
  store float %w, ptr %q
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _checked(name: str, stored: str) -> str:
    """y = `stored`, where the first x outside 0 <= x < 10 is recorded as one of site 1."""
    return _head(name, 1, 1) + f"""  %n = load i64, ptr %sizes
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %start], [%j, %next]
  %p = getelementptr i64, ptr %x0, i64 %i
  %v = load i64, ptr %p
  %q = getelementptr i64, ptr %y0, i64 %i
  store i64 {stored}, ptr %q
  %bad = icmp ugt i64 %v, 9
  br i1 %bad, label %record, label %next
record:
  %word = getelementptr i8, ptr %ctx, i64 24
  %number = add i64 %i, {1 << 40}
  store i64 %number, ptr %word
  ret i32 2
next:
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}}
"""


# y = how often the loop ran: time that does not depend on the amount of data.
COUNT = _head("count", 1, 1) + """  %n = load i64, ptr %x0
  br label %loop
loop:
  %i = phi i64 [0, %start], [%j, %loop]
  store volatile i64 %i, ptr %y0
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""

IOTA = _head("constant", 0, 1) + """  store i64 5, ptr %y0
  %q = getelementptr i64, ptr %y0, i64 1
  store i64 7, ptr %q
  ret i32 0
}
"""


def _status(name: str, status: int) -> str:
    return _head(name, 0, 0) + f"  ret i32 {status}\n}}\n"


SITES = ("", "model.py:12:9: take: index out of range")

_CASES: dict[str, tuple[str, str, dict[str, object]]] = {
    "add": ("(tensor<Bxf32>, tensor<Bxf32>) -> tensor<Bxf32>", elementwise("add", 2, "float", ADD),
            {"symbols": ("B",), "arg_names": ("x", "y")}),
    "update": ("(tensor<Bxf32>, tensor<Bxf32>) -> tensor<Bxf32>", elementwise("update", 2, "float", ADD),
               {"symbols": ("B",), "arg_names": ("params", "grads"), "aliases": (0,)}),
    "fixed": ("(tensor<2x3xf32>) -> tensor<2x3xf32>",
              elementwise("fixed", 1, "float", "  %r = fadd float %a0, %a0\n", "  %n = add i64 6, 0\n"), {}),
    "transform": ("(tensor<2x3xf32>) -> tensor<2x3xf32>",
                  elementwise("transform", 1, "float", "  %r = fadd float %a0, %a0\n", "  %n = add i64 6, 0\n"),
                  {"aliases": (0,)}),
    "scalar": ("(tensor<f64>) -> tensor<f64>",
               elementwise("scalar", 1, "double", "  %r = fneg double %a0\n", "  %n = add i64 1, 0\n"), {}),
    "logical_not": ("(tensor<Bxi1>) -> tensor<Bxi1>", elementwise("logical_not", 1, "i8", "  %r = xor i8 %a0, 1\n"),
                    {"symbols": ("B",)}),
    "half": ("(tensor<Bxbf16>) -> tensor<Bxbf16>", elementwise("half", 1, "i16", "  %r = xor i16 %a0, -32768\n"),
             {"symbols": ("B",)}),
    "outer": ("(tensor<Bxf32>, tensor<Cxi8>) -> tensor<(B*C+1)xf32>",
              elementwise("outer", 0, "float", "  %r = fadd float 1.0, 2.0\n",
                          TWO_SIZES + "  %bc = mul i64 %n0, %m\n  %n = add i64 %bc, 1\n"), {"symbols": ("B", "C")}),
    "quarter": ("(tensor<Bxf32>, tensor<(2*B)xf32>) -> (tensor<(B floordiv 4)xf32>, tensor<((B - 2) mod 3)xf32>)",
                elementwise("quarter", 0, "float", "  %r = fadd float 1.0, 0.0\n",
                            "  %n0 = load i64, ptr %sizes\n  %n = udiv i64 %n0, 4\n"), {"symbols": ("B",)}),
    "shrink": ("(tensor<Bxf32>) -> tensor<(B-1)xf32>",
               elementwise("shrink", 0, "float", "  %r = fadd float 1.0, 0.0\n",
                           "  %n0 = load i64, ptr %sizes\n  %n = sub i64 %n0, 1\n"), {"symbols": ("B",)}),
    "both": ("(tensor<Bxf32>, tensor<Bxf32>) -> (tensor<Bxf32>, tensor<Bxf32>)",
             elementwise("both", 2, "float", ADD, results=2), {"symbols": ("B",), "aliases": (-1, 1)}),
    "arena": ("(tensor<Bxf32>) -> tensor<Bxf32>", ARENA, {"symbols": ("B",)}),
    "checked": ("(tensor<Bxi64>) -> tensor<Bxi64>", _checked("checked", "%v"),
                {"symbols": ("B",), "error_sites": SITES}),
    "checked_in_place": ("(tensor<Bxi64>) -> tensor<Bxi64>", _checked("checked_in_place", "0"),
                         {"symbols": ("B",), "error_sites": SITES, "aliases": (0,)}),
    "count": ("(tensor<i64>) -> tensor<i64>", COUNT, {"work": -1}),
    "constant": ("() -> tensor<2xi64>", IOTA, {}),
    "sized": ("() -> tensor<Nxf32>", elementwise("sized", 0, "float", "  %r = fadd float 1.0, 0.0\n"),
              {"symbols": ("N",)}),
    "always_small": ("(tensor<f32>) -> tensor<f32>", _status("always_small", 1), {}),
    "strange": ("(tensor<f32>) -> tensor<f32>", _status("strange", 7), {}),
}


@cache
def executable() -> Executable:
    """All entries of this module, loaded."""
    interfaces = {}
    for name, (type, _, more) in _CASES.items():
        parsed = Parser(type, "<test>").type()
        assert isinstance(parsed, FunctionType)
        fields = {"aliases": (-1,) * len(parsed.results), **more}
        interfaces[name] = Interface(name, parsed, **fields)  # type: ignore[arg-type]
    text = "".join(body for _, body, _ in _CASES.values())
    return load_object(object_code.compile_object(text, host()), interfaces)
