"""Faults of functions, rules and kernels that had none yet, written by reading the compiler, not the checks."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    derivative,
    fusion,
    layout,
    loops,
    lowering,
    merging,
    numerics,
    recorder,
    rows,
    rule,
)

schedule = rows("schedule", "loop_to_scf")

FAULTS: tuple[Fault, ...] = (
    # -- recorder -----------------------------------------------------------------------------------------------------
    # histogramdd(points, bins of unequal widths, density=True): divided by the widths of the other coordinate
    recorder("frontend/functions/counting.py",
             "result = result / reshape(tracer(widths), [shape[d], *[1] * (len(shape) - d - 1)])",
             "result = result / reshape(tracer(widths), [shape[d], *[1] * d])"),
    # istft(z, 4, 3, length=10), longer than by default: the end is zeros, not what the last frame holds
    recorder("frontend/functions/fft/frames.py",
             'stop = total - start if length is None else min(total, start + plain_int(length, "length"))',
             'stop = total - start if length is None else min(total - start, start + plain_int(length, "length"))'),
    # gradient(y, spacing=(x,), edge_order=2), the places x not evenly spaced: its first and last element
    recorder("frontend/functions/calculus.py",
             "bend = [(after - before) / (a + b) * step for step in (a, b)]",
             "bend = [(after - before) / (a + b) * step for step in (b, a)]"),
    # nanmedian of a row with an even number of numbers: the greater of the middle ones
    recorder("frontend/functions/sort/quantiles.py",
             "some = E.maximum(_count(x, at) - nans - 1, 0) // 2",
             "some = E.maximum(_count(x, at) - nans, 0) // 2"),
    # interpolate(x, scale_factor=2.2) of two pixels: each is there twice, and not the first one three times
    recorder("frontend/functions/resize.py",
             "if o % n == 0 and (scale == n / o or (mode == \"nearest\" and x.ndim == 4 and o in (n, 2 * n))):",
             "if o % n == 0:", ops="take"),

    # -- derivatives and expansions -----------------------------------------------------------------------------------
    # d x**y / dy at 0**0: -inf
    derivative("dialects/tensor/binary.py",
               'compare("ge", exponent, zero)).result',
               'compare("gt", exponent, zero)).result', rule="tensor.pow", ops="pow"),
    # jvp of logcumsumexp: the sums of the later elements
    derivative("dialects/tensor/cumulative.py",
               "return [cast(self._weighed(widened(tangent), x, -self._finite(), self.reverse), self.x.type.dtype)]",
               "return [cast(self._weighed(widened(tangent), x, -self._finite(), not self.reverse), "
               "self.x.type.dtype)]", rule="tensor.logcumsumexp", ops="logcumsumexp"),
    # the gradient of acosh(x) of 1e20, whose square overflows, and near 1, where it cancels
    derivative("dialects/tensor/trigonometry.py",
               "return ct * (Rsqrt(self.x - 1).result * Rsqrt(self.x + 1).result)",
               "return ct * Rsqrt(self.x * self.x - 1).result", rule="tensor.acosh", ops="acosh"),
    # solve_triangular(a, b, upper=False, unitriangular=True): the gradient of the diagonal, which is not read
    derivative("dialects/tensor/linalg/triangular.py",
               "return [on_diagonal(full(0, da), da) if self.unit else da, db]",
               "return [da, db]", rule="tensor.triangular_solve", ops="triangular_solve"),
    # the gradient of the factors of a matrix that is wider than high, by qr
    derivative("dialects/tensor/linalg/elimination.py",
               "            dq = dq + product(part(self.x, 0, m, k, n), part(dr, 0, k, k, n), right=True)\n",
               "", rule="tensor.qr", ops="qr"),
    # log of the greater half of the subnormal numbers
    numerics("dialects/expansions/logarithm.py",
             "smallest = 2.0 ** (1 - BIAS[bits])",
             "smallest = 2.0 ** -BIAS[bits]", ops="log log2"),
    # tanh of float64 numbers beyond 10
    numerics("dialects/expansions/exponential.py",
             "b.add(a, a), None, {32: 20.0, 64: 40.0}[bits])",
             "b.add(a, a), None, 20.0)", ops="tanh"),
    # the sum of 1000 float16 numbers, rounded after each of them
    numerics("passes/fix_numerics/__init__.py",
             "_NARROW = (f16, bf16)",
             "_NARROW = (bf16,)", ops="reduce_sum", blame="tensor_to_loop"),
    # fft of 32768 points, whose roots of unity are computed: those of the inverse
    numerics("dialects/tensor/fourier.py",
             "angle = power * (sign * 2 * math.pi / n)",
             "angle = power * (2 * math.pi / n)", ops="dft", blame="decompose"),

    # -- rewrite rules ------------------------------------------------------------------------------------------------
    # x * 0.0 where x is NaN, infinite or negative
    rule("dialects/tensor/binary.py",
         'if kind(op.rhs.type.dtype) == "int" and is_splat(op.rhs, 0):',
         "if is_splat(op.rhs, 0):", rule="int_times_zero", ops="mul"),
    # x + 0.0 where x is -0.0
    rule("dialects/tensor/binary.py",
         'return _same(op, op.lhs) if is_splat(op.rhs, -0.0 if kind(op.rhs.type.dtype) == "float" else 0) else None',
         "return _same(op, op.lhs) if is_splat(op.rhs, 0) else None", rule="add_zero", ops="add"),
    # x.flip(0).flip((0, 1)): rows are reversed, too
    rule("dialects/tensor/slicing.py",
         "axes = tuple(sorted({*op.axes} ^ {*inner.axes}))",
         "axes = tuple(sorted({*op.axes} | {*inner.axes}))", rule="reverse_twice", ops="reverse"),
    # x.permute(1, 2, 0).transpose(1, 2) of a cube: permutations that do not commute
    rule("dialects/tensor/shape.py",
         "return transpose(inner.x, [inner.perm[q] for q in op.perm]) if isinstance(inner, Transpose) else None",
         "return transpose(inner.x, [op.perm[p] for p in inner.perm]) if isinstance(inner, Transpose) else None",
         rule="transpose_twice", ops="transpose"),
    # x.sum(1) of a column with -0.0
    rule("dialects/tensor/reduce.py",
         "@rewrite(ReduceProd, ReduceMax, ReduceMin, ReduceAny, ReduceAll)\n"
         "def reduce_single",
         "@rewrite(ReduceSum, ReduceProd, ReduceMax, ReduceMin, ReduceAny, ReduceAll)\n"
         "def reduce_single", rule="reduce_single", ops="reduce_sum"),
    # x.float().to(int8) of int16 beyond 127: wraps, and does not saturate
    rule("dialects/tensor/compare.py",
         '    if [kind(t) for t in (inner.x.type.dtype, inner.dtype, op.dtype)] == ["int", "float", "int"]:\n'
         "        return None                                # float to int saturates, int to int wraps\n",
         "", rule="cast_of_exact_cast", ops="cast"),
    # x // 1.0 of floats is x
    rule("dialects/tensor/binary.py",
         '    if isinstance(op, FloorDiv) and kind(op.lhs.type.dtype) == "float":\n'
         "        return None\n"
         "    return _same(op, op.lhs) if is_splat(op.rhs, 1)",
         "    return _same(op, op.lhs) if is_splat(op.rhs, 1)", rule="one_on_the_right", ops="floordiv"),

    # -- layouts, fusion, merging -------------------------------------------------------------------------------------
    # a frozen convolution, then flatten(0, 1), of samples and channels, between which pixels lie in memory
    layout("passes/assign_layouts.py",
           "if [place[a] for a in old] != [*range(place[old[0]], place[old[0]] + len(old))]:",
           "if [place[a] for a in old] != sorted(place[a] for a in old):", ops="convolution reshape"),
    # a frozen product of bfloat16 with 64 rows: the two terms of a word are exchanged in one factor
    layout("passes/hoist_constants/panels.py",
           "panels = tensor.Unpack(panels, within, x.type.shape[terms], place, columns.reversed).result",
           "panels = tensor.Unpack(panels, within, x.type.shape[terms], place).result",
           ops="dot_general", blame="hoist_constants"),
    # a = 2 y and a + z, y and z products, z read by nothing else: a is written over z before that is loaded
    fusion("passes/tensor_to_loop/evaluate.py",
           "values = [self.value(v, at, None) for v, at in zip(self.outputs, maps)]",
           "values = (self.value(v, at, None) for v, at in zip(self.outputs, maps))", ops="mul add"),
    # a = exp(y) and y - a.sum(1), y read by nothing else: a is written over y, which is read again
    fusion("passes/fuse/kernels.py",
           "last = tuple(max((stage for stage, _ in found), default=0) for found in reads.values())",
           "last = tuple(min((stage for stage, _ in found), default=0) for found in reads.values())",
           ops="exp reduce_sum", blame="fuse"),
    # x * 0.0 and x * -0.0 in one function are the same
    merging("passes/analysis/structural_key.py",
            'return "float", math.copysign(1.0, value), value if value == value else "nan"',
            'return "float", value if value == value else "nan"', ops="full", blame="cse"),

    # -- aliasing -----------------------------------------------------------------------------------------------------
    # y.double() - y.double().sum(1), y a temporary: written over y, which is half as large
    aliasing("passes/bufferize/lifetimes.py",
             "a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:",
             "a.shape != b.shape:", ops="cast reduce_sum"),
    # (w @ x).index_add(0, i, u) of a donated x: the product is written over x while it reads that
    aliasing("passes/bufferize/function.py",
             "return all(self.life.fits_in_place(x.op, x, argument) for x in updates(result) if x.op is not None)",
             "return self.life.fits_in_place(result.op, result, argument)", ops="dot_general scatter"),
    # exp(y.T), y a square temporary: written over y
    aliasing("dialects/tensor/kernel.py",
             "if self.indexing_maps[operand] != self.indexing_maps[len(self.ins) + result]:",
             "if len(self.indexing_maps[operand].results) != len(self.indexing_maps[len(self.ins) + result].results):",
             ops="transpose"),

    # -- loops --------------------------------------------------------------------------------------------------------
    # x.amax(1) and x.sum(1) of long rows: the sum has no runs, as the maximum has none, and other last bits
    loops("passes/tensor_to_loop/reductions.py",
          "return min(reduction_orders(reduces) or {order_of(op) for op in reduces}, key=lanes)",
          "return min((order_of(op) for op in reduces), key=lanes)", ops="reduce_sum reduce_max"),
    # x // y and x % y of integers where y is negative
    loops("passes/tensor_to_loop/scalar.py",
          'opposite = arith.CmpI("slt", arith.XorI(rest, divisor).result, zero).result',
          'opposite = arith.CmpI("slt", a, zero).result', ops="floordiv rem"),

    # -- schedules, vectors and tails ---------------------------------------------------------------------------------
    # a kernel that is shared along three dimensions, such as a permutation of five axes
    schedule("passes/loop_to_scf/partition.py",
             "place = sizes.divide(place, counts[d])",
             "place = sizes.divide(place, width)", ops="transpose"),
    # the gradient of avg_pool1d(x, 70, stride=64): the window that an element is in changes within a vector
    schedule("ir/affine.py",
             "                if (isinstance(atom.den, int) and atom.den % run == 0 and position not in "
             "dims_of(rest)\n"
             "                        and is_multiple_of(rest, run)):",
             "                if isinstance(atom.den, int) and atom.den % run == 0 and position not in dims_of(rest):",
             ops="place"),
    # a product of bfloat16 with an odd number of terms: without the last one
    schedule("passes/lower_kernel/interleaved.py",
             "terms = extent(low, d) + run - 1",
             "terms = extent(low, d)", ops="dot_general"),
    # a frozen convolution of 3 x 3 with 32 channels: terms at the end of a block are added in the next one again
    schedule("passes/lower_kernel/nest.py",
             "start, last = sizes.divide(first + size - 1, size), sizes.divide(end, size)",
             "start, last = sizes.divide(first, size), sizes.divide(end, size)", ops="convolution"),
    # a product of bfloat16 numbers of about 2^-62: subnormal sums are taken for zeros
    schedule("passes/lower_kernel/interleaved.py",
             "exponent = arith.SubI(field, number(BIAS + PRECISION)).result",
             "exponent = arith.SubI(field, number(BIAS)).result", ops="dot_general"),

    # -- lowering -----------------------------------------------------------------------------------------------------
    # float32 to bfloat16 half way between two: to the one further from zero, not to the even one
    lowering("passes/lower_to_llvm/arithmetic.py",
             "rounded = llvm.Add(bits, llvm.Select(odd, number(0x8000), number(0x7FFF)).result).result",
             "rounded = llvm.Add(bits, number(0x8000)).result", ops="cast"),

    # -- calls and cache keys -----------------------------------------------------------------------------------------
    # a frozen product, called before and after its weights are changed in place
    cache("mlc/frozen.py",
          "    captures.read += captures.tensors()\n",
          "", ops="dot_general"),
    # f(x, slice(0, 6, 2)) and then f(x, slice(0, 6, 3)), the slice static
    cache("frontend/leaf_keys.py",
          "return kind, frozen_leaf(x.start), frozen_leaf(x.stop), frozen_leaf(x.step)",
          "return kind, frozen_leaf(x.start), frozen_leaf(x.stop)"),
    # a global number that a function reaches changes from 0.0 to -0.0
    cache("frontend/script/reached_state.py",
          "and bool(frozen_leaf(a) == frozen_leaf(b)))",
          "and bool(a == b))"),
)
