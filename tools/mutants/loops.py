"""Seeded faults of numerics, fusion, buffers, schedules and the loops that kernels become."""

from __future__ import annotations

from mlc.tools.mutants.fault import Fault, loops, rows
from mlc.tools.mutants.fault import aliasing as alias
from mlc.tools.mutants.fault import numerics as fix

FIX = "passes/fix_numerics/__init__.py"
COMPOSITE, SCALAR = "dialects/tensor/composite.py", "passes/tensor_to_loop/scalar.py"
NEST, MEMORY, COMPUTE = (f"passes/lower_kernel/{name}.py" for name in ("nest", "memory", "compute"))
decompose = rows("numerics", "decompose")
fuse = rows("fusion", "fuse")
schedule = rows("schedule", "vectorize")
lower = rows("tails and accesses", "loop_to_scf")

FAULTS: tuple[Fault, ...] = (
    decompose(COMPOSITE, 'e = exp(x - max_kept(x, (axis,)))', "e = exp(x)", ops="softmax"),
    decompose(COMPOSITE, "shift = select(infinite, full(0, top), top)", "shift = top", ops="logsumexp"),
    decompose(COMPOSITE, "tensor.Log1p(exp(-tensor.Abs(x).result)).result", "tensor.Log1p(exp(-x)).result",
              ops="softplus"),
    decompose("dialects/tensor/statistics.py", "return tensor.Full(max(0, n - self.correction), (), dtype)",
              "return tensor.Full(max(0, n), (), dtype)", ops="var"),
    decompose("dialects/tensor/activation.py", "def decompose(self) -> Value:\n        zero = full(0, self.x)\n",
              "def decompose(self) -> Value:\n        zero = full(0.001, self.x)\n", ops="relu"),
    fix("dialects/expansions/hyperbolic.py", "return b.copysign(b.select(b.cmp(\"olt\", a, b.const(1, a)), small, "
        "large), x)", "return b.select(b.cmp(\"olt\", a, b.const(1, a)), small, large)", ops="sinh"),
    fix("dialects/expansions/hyperbolic.py", "result = b.select(b.cmp(\"olt\", a, b.const(_TINY, x)), a, result)\n"
        "    return b.copysign(b.select(b.cmp(\"olt\", a, b.const(math.inf, x)), result, a), x)",
        "return b.copysign(result, x)", ops="asinh"),
    fix("dialects/expansions/logarithm.py", 'result = b.select(b.cmp("oeq", x, infinity), infinity, result)\n    limit',
        "limit", ops="log"),
    fix("dialects/expansions/logarithm.py", "return b.select(b.cmp(\"ogt\", x, limit), result, outside)",
        "return result", ops="log"),
    fix(FIX, "def roundeven(self, a: Value) -> Value:\n        return math.RoundEven(a)",
        "def roundeven(self, a: Value) -> Value:\n        return math.Floor(a)", ops="exp sin"),
    fix(FIX, "moved = tuple(a + (a > axis) for a in op.axes)",
        "moved = tuple(a for a in op.axes)", ops="reduce_sum"),
    fix(FIX, "outer = type(op)(inner.result, tuple(i for i, a in enumerate(kept) if a in axes))",
        "outer = type(op)(inner.result, tuple(a for a in axes if a < len(kept)))", ops="reduce_sum"),
    fix(FIX, "result.dtype).result if result.dtype in _NARROW else wide_result",
        "result.dtype).result if result.dtype == f16 else wide_result", ops="add"),
    fuse("passes/fuse/legality.py", "if home.kind == \"scatter\":\n            return", "if False:\n            return",
         ops="scatter"),
    fuse("passes/fuse/legality.py", "if len(home.orders | guest.orders) > 1:", "if False:", ops="reduce_sum"),
    fuse("passes/fuse/legality.py", "if self.graph.between(producer, consumer):", "if False:"),
    fuse("passes/fuse/legality.py", "if producer.kind != \"pointwise\":\n            return f\"a {producer.kind} is "
         "evaluated once\"",
         "if producer.kind == \"contract\":\n            return f\"a {producer.kind} is evaluated once\""),
    fuse("passes/fuse/legality.py", "if producer.ops[s] is None or there is None or not at_own:",
         "if there is None:"),
    fuse("passes/fuse/legality.py", "if self.graph.leaves(user) or self.graph.group_of.get(user) is not consumer:",
         "if self.graph.leaves(user):"),
    fuse("passes/fuse/legality.py",
         "home.kind != \"reduce\" or guest.kind != \"reduce\" or home.domain != guest.domain):",
         "home.kind != \"reduce\" or guest.kind != \"reduce\"):", ops="reduce_sum"),
    fuse("dialects/tensor/index.py", "return (domain.in_slice, ", "return (domain.points, ", ops="take_along"),
    fuse("dialects/tensor/iteration.py", "return tuple(0 if n == 1 else e for n, e in zip(shape, at[len(at) - "
         "len(shape):]))", "return tuple(0 if n == 1 else e for n, e in zip(shape, at))", ops="add"),
    alias("passes/bufferize/lifetimes.py", "return self.last.get(value, -1) <= self.start[op] and not is_viewed(value)",
          "return self.last.get(value, -1) <= self.start[op] + 1 and not is_viewed(value)"),
    alias("passes/bufferize/lifetimes.py", "return self.last.get(value, -1) <= self.start[op] and not is_viewed(value)",
          "return self.last.get(value, -1) <= self.start[op]"),
    alias("passes/bufferize/lifetimes.py", "return op.may_overwrite(op.ins.index(operand), op.results.index(result))",
          "return True"),
    alias("passes/bufferize/lifetimes.py", "if isinstance(around, scf.For | scf.While):\n                until = "
          "self.end[around]", "if isinstance(around, scf.While):\n                until = self.end[around]"),
    alias("passes/bufferize/lifetimes.py", "self.last[op.x] = max(self.last[op.x], self.last.get(op.result, -1))",
          "self.last[op.x] = self.last[op.x]"),
    alias("passes/bufferize/lifetimes.py", "or a.dtype.itemsize != b.dtype.itemsize:", "or False:"),
    alias("dialects/tensor/kernel.py", "return bool(self.last_reads[operand] <= min(written))", "return True"),
    alias("dialects/tensor/kernel.py", "if self.indexing_maps[operand] != self.indexing_maps[len(self.ins) + result]:",
          "if False:"),
    alias("passes/bufferize/plan.py", "storage.free_after = max(storage.free_after, until)",
          "storage.free_after = until"),
    alias("passes/bufferize/plan.py", "if slot.free_after >= step: ", "if slot.free_after > step: "),
    alias("passes/bufferize/plan.py", "self.slots[i].needed = max(bytes, size)", "self.slots[i].needed = bytes"),
    alias("passes/bufferize/plan.py", "and s.free_after == step and self.life.fits_in_place(op, v, x)",
          "and self.life.fits_in_place(op, v, x)"),
    alias("passes/bufferize/plan.py", "self.hint(yielded, result, arg)", "self.hint(yielded, result, None)"),
    alias("passes/bufferize/plan.py", "return (self.needed + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT",
          "return self.needed // ALIGNMENT * ALIGNMENT"),
    alias("passes/bufferize/function.py", "if target is not None and self.buffer(v) is not target:",
          "if target is not None and self.buffer(v) is not target and terminator.operands[-1] is not v:"),
    alias("passes/bufferize/function.py", "strides[axis] = strides[axis + 1] * shape[axis + 1]\n        view",
          "strides[axis] = strides[axis + 1] * shape[axis]\n        view"),
    loops("dialects/tensor/iteration.py", "position = position * n + i\n    return position",
          "position = position + n * i\n    return position", ops="reshape"),
    loops("dialects/tensor/iteration.py",
          "position if axis == first else 0 if n in (0, 1) else sizes.modulo(position, n)",
          "sizes.modulo(position, n) if axis == 0 else 0 if n in (0, 1) else position", ops="reshape"),
    loops("passes/tensor_to_loop/reductions.py", "return self.stages.length - 1 - here if True in directions else here",
          "return self.stages.length - here if True in directions else here", ops="cumulative"),
    loops("passes/tensor_to_loop/reductions.py",
          'x = self.map([inside, x], lambda c, v: arith.Select(c, v, arith.constant('
          "neutral, v.type)).result)", "pass", ops="reduce_sum"),
    loops("dialects/combining.py", """{'u' if unsigned else 's'}i""", "si", ops="reduce_max"),
    loops(SCALAR, '"une" if predicate == "ne" else "o" + predicate', '"one" if predicate == "ne" else "o" + predicate',
          ops="compare"),
    loops(SCALAR, 'sign = "" if predicate in ("eq", "ne") else "u" if _is_unsigned(t) else "s"',
          'sign = "" if predicate in ("eq", "ne") else "s"', ops="compare"),
    loops(SCALAR, "opposite = arith.CmpI(\"slt\", arith.XorI(rest, divisor)", "opposite = arith.CmpI(\"sgt\", "
          "arith.XorI("
          "rest, divisor)", ops="floordiv rem"),
    loops(SCALAR, "trap = arith.OrI(trap, arith.AndI(least, minus).result).result", "pass", ops="floordiv fmod"),
    loops("dialects/combining.py", "return -np.inf if isinstance(dtype, FloatType)",
          "return 0.0 if isinstance(dtype, FloatType)", ops="reduce_max"),
    loops(SCALAR, "over = arith.CmpF(\"oge\", x, _const(edge, x)).result", "over = arith.CmpF(\"ogt\", x, "
          "_const(edge, x)).result", ops="cast"),
    loops(SCALAR, "return (arith.ExtUI if _is_unsigned(source) else arith.ExtSI)(x,", "return arith.ExtSI(x,",
          ops="cast"),
    loops(SCALAR, "far = arith.CmpI(\"uge\", b,", "far = arith.CmpI(\"ugt\", b,", ops="shl shr"),
    loops("passes/coalesce_dimensions.py",
          "return axis if op.buffer.type.shape[axis + 1] == kernel.domain[d + 1] else None",
          "return axis", blame="coalesce_dimensions"),
    loops("passes/coalesce_dimensions.py", "if n <= d else n - 1 for n", "if n < d else n - 1 for n",
          blame="coalesce_dimensions"),
    schedule("passes/parallelize.py", "for e in op.map.results if not tiles_of(e) for d in",
             "for e in op.map.results for d in", blame="parallelize"),
    schedule("passes/schedule/transforms.py", "mapping[start] = loop.LoadScratch(buffer).result", "pass"),
    schedule("passes/schedule/transforms.py", "dims = sorted(factor.type.dims, key=lambda d: (d == vector, d < "
             "kernel.parallel, d))", "dims = sorted(factor.type.dims)"),
    schedule("passes/loop_to_scf/partition.py",
             "_between(low, dim, low.named(\"block\", start), low.least(last - row * width, width))",
             "_between(low, dim, low.named(\"block\", start), width)", blame="loop_to_scf"),
    schedule("passes/loop_to_scf/partition.py", "low.scope.stop[d] = last * size if whole else low.least(last * size, "
             "extent)", "low.scope.stop[d] = last * size", blame="loop_to_scf"),
    lower(NEST, "return self.leftover(d, end - rest, end, size, carried, body, whole)\n        rest",
          "return carried if rest == 1 else self.leftover(d, end - rest, end, size, carried, body, whole)\n        "
          "rest"),
    lower(NEST, "if not isinstance(count, int) or count < lanes:", "if not isinstance(count, int) or count < lanes "
          "- 1:"),
    lower(NEST, "count = rest - offset", "count = rest"),
    lower(NEST, "carried, start = self.repeat(d, start, stop, run, carried, body), stop",
          "carried, start = self.repeat(d, start, stop, run + 1, carried, body), stop"),
    lower(NEST, "return range(0, scope.block.get(d, self.kernel.schedule.tile[d]), scope.lanes)",
          "return range(0, self.kernel.schedule.tile[d], scope.lanes)"),
    lower(NEST, "if trip == size:\n            with", "if isinstance(trip, int) and trip <= 2 * size:\n            "
          "with"),
    lower(MEMORY, "order = tuple(reversed(range(low.lanes)))", "order = tuple(range(low.lanes))"),
    lower(MEMORY, "        mask = vector.Shuffle(mask, mask, order).result\n", ""),
    lower(MEMORY, "where = scalar_index(low, start + 2 * first,", "where = scalar_index(low, start + first,"),
    lower(MEMORY, "steps if step == 1 else", "steps if step != 2 else"),
    lower(MEMORY, "strides[axis] = strides[axis + 1] * shape[axis + 1]", "strides[axis] = strides[axis + 1] * "
          "shape[axis]"),
    lower(MEMORY, "last = (*indices[:-1], arith.AddI(indices[-1], rest).result)", "last = indices"),
    lower(MEMORY, "return low.once((own, inside), lambda: arith.AndI(own, inside).result)", "return own"),
    lower(NEST, "where = builder.block, key", "where = None, key"),
    lower(MEMORY, '("steps", step, low.lanes)', '("steps", low.lanes)'),
    lower(COMPUTE, "while (half := len(parts) // 2):\n            parts = [combine(a, b) for a, b in zip(parts[:half], "
          "parts[half:])]", "while (half := len(parts) // 2):\n            parts = [combine(a, b) for a, b in "
          "zip(parts[::2], parts[1::2])]", ops="reduce_sum"),
    lower(COMPUTE, "for k in range(low.scope.block[op.dim]):\n        at = _moved(point, op.dim, k)\n        lhs, rhs",
          "for k in reversed(range(low.scope.block[op.dim])):\n        at = _moved(point, op.dim, k)\n        lhs, rhs",
          ops="dot_general"),
    lower(COMPUTE, "acc = math.Fma(lhs, rhs, acc).result", "acc = arith.AddF(arith.MulF(lhs, rhs).result, acc).result",
          ops="dot_general"),
    lower("dialects/combining.py", "CombiningKind.MAXUI: _Forms(None, arith.MaxUI, np.maximum)",
          "CombiningKind.MAXUI: _Forms(None, arith.MaxSI, np.maximum)", ops="reduce_max"),
    lower("passes/lower_kernel/transposed.py", "out[j::piece] = columns(",
          "out[j * n // piece: (j + 1) * n // piece] = "
          "columns("),
)
