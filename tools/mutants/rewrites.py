"""Seeded faults of rewrite rules, folding, common subexpressions and signatures."""

from __future__ import annotations

from mlc.tools.mutants.fault import Fault, rows

KEYS = "passes/analysis/structural_key.py"

BINARY, UNARY, SHAPE, SLICING, COMPARE, REDUCE, ARITH = (
    "dialects/tensor/binary.py", "dialects/tensor/elementwise.py", "dialects/tensor/shape.py",
    "dialects/tensor/slicing.py",
    "dialects/tensor/compare.py", "dialects/tensor/reduce.py", "dialects/arith/rules.py")
rule = rows("rule", "canonicalize")
merge = rows("merging", "cse")

FAULTS: tuple[Fault, ...] = (
    rule(BINARY, "if is_splat(op.rhs, -0.0 if kind(op.rhs.type.dtype)", "if is_splat(op.rhs, 0) or is_splat(op.rhs, "
         "-0.0"
         " if kind(op.rhs.type.dtype)", "add_zero", "add"),
    rule(BINARY, '"""x - +0 == x"""\n    return _same(op, op.lhs) if is_splat(op.rhs, 0) else None',
         '"""x - +0 == x"""\n    return _same(op, op.lhs) if splat(op.rhs) == 0 else None', "sub_zero", "sub"),
    rule(BINARY, "if isinstance(op, FloorDiv) and kind(op.lhs.type.dtype) == \"float\":", "if False:",
         "one_on_the_right", "floordiv"),
    rule(BINARY, 'if kind(op.rhs.type.dtype) == "int" and is_splat(op.rhs, 0):', "if is_splat(op.rhs, 0):",
         "int_times_zero", "mul"),
    rule(BINARY, "if is_splat(op.rhs, 2) and op.lhs.type == op.result.type else None",
         "if is_splat(op.rhs, 3) and op.lhs.type == op.result.type else None", "square", "pow"),
    rule(BINARY, '"""x + -y == x - y"""\n    return Sub(op.lhs, op.rhs.op.x)', '"""x + -y == x - y"""\n'
         "    return Sub(op.rhs.op.x, op.lhs)", "add_of_neg", "add"),
    rule(BINARY, "return Add(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg)",
         "return Sub(op.lhs, op.rhs.op.x).result if isinstance(op.rhs.op, Neg)", "sub_of_neg", "sub"),
    rule(BINARY, "return op.lhs if op.lhs is op.rhs else None", "return op.lhs", "idempotent", "and or"),
    rule(BINARY, "if op.commutative and splat(op.lhs) is not None and splat(op.rhs) is None:",
         "if splat(op.lhs) is not None and splat(op.rhs) is None:", "splat_to_the_right", "sub div"),
    rule(UNARY, "return inner.x if isinstance(inner, Unary) and type(inner) is type(op) else None",
         "return inner.x if isinstance(inner, Unary) and isinstance(inner, Neg | Abs | LogicalNot) else None",
         "involution", "neg"),
    rule(UNARY, "return op.x if isinstance(op.x.op, Floor | Ceil | Round) else None",
         "return op.x if isinstance(op.x.op, Floor | Ceil | Round | Abs) else None", "rounding_twice", "floor"),
    rule(COMPARE, "return op.x if op.x.type == op.result.type else None", "return op.x if op.x.type.shape == "
         'op.result.type.shape and {str(op.x.type.dtype), str(op.dtype)} <= {"i32", "ui32"} else None', "cast_to_same",
         "cast"),
    rule(COMPARE, 'or not embeds(inner.x.type.dtype, inner.dtype):', "or inner.dtype == i1:", "cast_of_exact_cast",
         "cast"),
    rule(COMPARE, '["int", "float", "int"]:', '["int", "int", "int"]:', "cast_of_exact_cast", "cast"),
    rule(COMPARE, "return select(inner.x, op.b, op.a) if isinstance(inner, LogicalNot)",
         "return select(inner.x, op.a, op.b) if isinstance(inner, LogicalNot)", "select_of_not", "select"),
    rule(COMPARE, "op.a if op.a is op.b or is_splat(op.condition, 1) else op.b if is_splat(op.condition, 0)",
         "op.a if op.a is op.b or is_splat(op.condition, 0) else op.b if is_splat(op.condition, 1)", "select_known",
         "select"),
    rule(COMPARE, 'if isinstance(inner, Compare) and (inner.predicate in ("eq", "ne") or kind(inner.lhs.type.dtype) != '
         '"float"):', "if isinstance(inner, Compare):", "not_of_compare", "logical_not"),
    rule(REDUCE, "@rewrite(ReduceProd, ReduceMax, ReduceMin, ReduceAny, ReduceAll)\ndef reduce_single",
         "@rewrite(Reduce)\ndef reduce_single", "reduce_single", "reduce_sum"),
    rule(REDUCE, "return full(op.identity(), op.result, op.result.type.shape)", "return full(0, op.result, "
         "op.result.type.shape)", "reduce_nothing", "reduce_prod reduce_max"),
    rule(REDUCE, "tuple(sorted((*inner.axes, *(kept[a] for a in op.axes))))", "tuple(sorted({*inner.axes, *op.axes}))",
         "reduce_twice", "reduce_max"),
    rule(SHAPE, "[inner.perm[q] for q in op.perm]", "[op.perm[q] for q in inner.perm]", "transpose_twice", "transpose"),
    rule(SHAPE, "return op.x if list(op.perm) == sorted(op.perm) else None", "return op.x if op.x.type == "
         "op.result.type else None", "transpose_nothing", "transpose"),
    rule(SHAPE, "long = [p for p in op.perm if op.x.type.shape[p] != 1]\n    return reshape(op.x, op.result.type.shape)"
         " if long == sorted(long) else None", "return reshape(op.x, op.result.type.shape) if 1 in op.x.type.shape "
         "else None", "transpose_of_single_axes", "transpose"),
    rule(SLICING, "starts.append(a + c * s)", "starts.append(a + c)", "slice_twice", "slice"),
    rule(SLICING, "stops.append(a + d if s == 1 else", "stops.append(d if s == 1 else", "slice_twice", "slice"),
    rule(SLICING, "same = op.result.type == op.x.type and all(s == 0 for s in op.starts) and all(s == 1 for s in "
         "op.steps)",
         "same = op.result.type == op.x.type", "slice_everything", "slice"),
    rule(SLICING, "axes = tuple(sorted({*op.axes} ^ {*inner.axes}))",
         "axes = tuple(sorted({*op.axes} | {*inner.axes}))", "reverse_twice", "reverse"),
    rule(SLICING, "kept = tuple(a for a in op.axes if op.x.type.shape[a] not in (0, 1))",
         "kept = tuple(a for a in op.axes if op.x.type.shape[a] not in (0, 1, 2))", "reverse_short", "reverse"),
    rule(SLICING, "return op.x if all(d == 0 for d in (*op.low, *op.high, *op.interior)) else None",
         "return op.x if all(d == 0 for d in (*op.low, *op.high)) else None", "pad_with_nothing", "pad"),
    rule("dialects/tensor/contract.py", "batch_pairs, contract = (tuple((b, a) for a, b in pairs)",
         "batch_pairs, contract = (tuple((a, b) for a, b in pairs)", "transpose_of_product", "dot_general"),
    rule("dialects/tensor/contract.py", "return full(0, op.result, op.result.type.shape)",
         "return full(1, op.result, op.result.type.shape)", "dot_of_nothing", "dot_general"),
    rule("dialects/tensor/source.py", "if flat.size == 0:", "if flat.size <= 2:", "constant_of_equal_elements"),
    rule(ARITH, '"""x + 0 == x - 0 == x << 0 == x >> 0 == x | 0 == x ^ 0 == x"""\n    return op.lhs if _is(op.rhs, 0)',
         '"""x + 0 == x - 0 == x << 0 == x >> 0 == x | 0 == x ^ 0 == x"""\n    return op.lhs if _is(op.rhs, 1)',
         "zero_on_the_right"),
    rule(ARITH, "return op.lhs if _is(op.rhs, 1) else op.rhs if _is(op.lhs, 1) else None",
         "return op.lhs if _is(op.rhs, 1) else op.rhs if _is(op.lhs, 2) else op.lhs if _is(op.rhs, 4) else None",
         "multiply_by_one"),
    rule("passes/canonicalize.py", "op.set_operands([rhs, lhs])", "op.set_operands([lhs, lhs])",
         "constant_to_the_right"),
    merge(KEYS, 'return "float", math.copysign(1.0, value), value', 'return "float", value'),
    merge(KEYS, "attrs = tuple([(k, attribute_key(v)) for k, v in sorted(op.attrs.items()) if v is not "
          "None])\n    segments", 'attrs = tuple([(k, attribute_key(v)) for k, v in sorted(op.attrs.items()) if v is '
          'not None and k != "axes"])\n    segments', ops="reduce_sum"),
    merge(KEYS, "if op.commutative and len(operands) == 2 and operands[1] < operands[0]:",
          "if len(operands) == 2 and operands[1] < operands[0]:"),
    merge("passes/cse.py", "            for key in item:\n                del table[key]", "            pass"),
    merge("passes/dead_argument_elimination.py", "keep = [i for i in range(len(returned)) if any(",
          "keep = [i for i in range(len(returned)) if all(", blame="dead_argument_elimination"),
    merge("passes/dead_argument_elimination.py", "known = call.args[function.args.index(v)] if v in function.args",
          "known = call.args[0] if v in function.args", blame="dead_argument_elimination"),
    merge("passes/analysis/effects.py", "reading and inner.reads", "inner.reads"),
)
