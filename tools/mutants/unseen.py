"""Faults written without sight of the checks that are to find them, nor of the other lists: what those are measured by.

Each is a mistake that a reviewer could overlook; the comment says for which program it gives a wrong result.
"""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    call,
    derivative,
    emission,
    gpu,
    lowering,
    numerics,
    recorder,
    rows,
    rule,
    transform,
)

merging = rows("merging")
fusion = rows("fusion", "fuse")
loops = rows("loops", "loop_to_scf")
tails = rows("tails and accesses", "loop_to_scf")
schedule = rows("schedule")

FAULTS: tuple[Fault, ...] = (
    # -- recorder -------------------------------------------------------------------------------------------------
    # diagonal of a matrix that is not square, with an offset: 3 x 5 and offset 2 has 3 elements, 3 x 4 one too many
    recorder("frontend/functions/index/lookup.py", "length = max(0, min(rows - down, columns - right))",
             "length = max(0, min(rows, columns) - max(down, right))", ops="slice"),
    # `for ... else` and `while ... else` with a `break`: the else part runs after a break, too
    recorder("frontend/script/jumps.py",
             "rest = [_unless(stop, [], orelse, s), *rest] if inside.breaks else [*orelse, *rest]",
             "rest = [*orelse, *rest]"),
    # `for i in range(0, n, 2)`, n a tensor: an odd n loses its last turn
    recorder("frontend/script/builtin.py", "Steps(-((start - stop) // step), lambda i: start + i * step, once=False)",
             "Steps((stop - start) // step, lambda i: start + i * step, once=False)"),
    # avg_pool1d(x, 3, 1, padding=1, count_include_pad=False): the last window is divided by 3, not 2
    recorder("frontend/functions/pooling/sliding.py", "limit = n + p if with_padding else n", "limit = n + p"),

    # -- rewrite rules and folds ----------------------------------------------------------------------------------
    # x[::2][1:] starts at x[1], not x[2]
    rule("dialects/tensor/slicing.py", "starts.append(a + c * s)", "starts.append(a + c)", rule="slice_twice",
         ops="slice"),
    # f16 to bf16 and on to f32: bf16 is as wide and does not hold every f16, so the rounding is lost
    rule("dialects/tensor/compare.py", "return source.width < target.width", "return source.width <= target.width",
         rule="cast_of_exact_cast", ops="cast"),
    # x & 0x7fffffff of negative int32: taken for a mask of all ones
    rule("dialects/tensor/binary.py",
         'ones = 1 if kind(dtype) == "bool" else int_range(dtype)[1] if dtype.unsigned else -1',
         'ones = 1 if kind(dtype) == "bool" else int_range(dtype)[1]', rule="bits_with_constant", ops="and"),

    # -- derivatives ----------------------------------------------------------------------------------------------
    # any gradient through batch norm in training: the projection on the result is n times too large
    derivative("dialects/tensor/statistics.py", "slope = mean_kept(ct * result, self.axes)",
               "slope = sum_kept(ct * result, self.axes)", rule="tensor.standardize", ops="standardize"),
    # d fmod(x, y) / dy where x and y have different signs
    derivative("dialects/tensor/binary.py",
               "return ct, -(ct * tensor.Round((self.lhs - self.result) / self.rhs).result)",
               "return ct, -(ct * tensor.Floor(self.lhs / self.rhs).result)", rule="tensor.fmod", ops="fmod"),
    # the second derivative, or jvp, of cumsum: its own derivative runs in reverse, and that one's must not
    derivative("dialects/tensor/cumulative.py", 'return Cumulative(x, "add", self.axis, not self.reverse).result',
               'return Cumulative(x, "add", self.axis, True).result', rule="tensor.cumulative", ops="cumulative"),

    # -- transforms -----------------------------------------------------------------------------------------------
    # vmap of a loop whose trip count differs between batch elements: the shorter ones run once more
    transform("passes/differentiate/batch_control.py",
              'counts = self.active(compare("lt", number, count), scope)',
              'counts = self.active(compare("le", number, count), scope)'),
    # the gradient of such a loop: cotangents pass by an iteration that an element has run, as well as through it
    transform("passes/differentiate/reverse_control.py", "kept = [(args[j], select(beside(p, ct), zeros(ct), ct))",
              "kept = [(args[j], ct)"),

    # -- merging --------------------------------------------------------------------------------------------------
    # layer_norm(x, weight=w) and layer_norm(x, bias=w) in one function are the same one
    merging("passes/analysis/structural_key.py",
            "    segments = tuple(op.segments) if op.segments is not None else None\n", "    segments = None\n",
            blame="cse", ops="layer_norm"),
    # the kernels of x.to(int8).to(int32) and x.to(int16).to(int32), x in int32, become one
    merging("passes/analysis/structural_key.py",
            "                        tuple([r.type for r in item.results]),\n", "", blame="outline", ops="cast"),

    # -- numerics -------------------------------------------------------------------------------------------------
    # the sum of 200,001 numbers: blocks that do not divide the axis leave its end out
    numerics("passes/fix_numerics/__init__.py",
             "size = next(n for n in range(BLOCK // length, 0, -1) if shape[axis] % n == 0)",
             "size = BLOCK // length", ops="reduce_sum"),
    # (-inf) ** 0.5 is inf, not NaN
    numerics("dialects/expansions/power.py",
             'negative = b.iand(b.cmp("olt", x, b.const(0, x)), b.cmp("ogt", x, b.neg(infinity)))',
             'negative = b.cmp("olt", x, b.const(0, x))', ops="pow"),
    # index_add of many bfloat16 to one place: rounded after each of them
    numerics("passes/fix_numerics/__init__.py",
             "return isinstance(op, Elementwise | Reduce | tn.DotGeneral | tn.Cumulative | Scattering) and any(",
             "return isinstance(op, Elementwise | Reduce | tn.DotGeneral | tn.Cumulative) and any(",
             blame="tensor_to_loop", ops="scatter"),

    # -- fusion ---------------------------------------------------------------------------------------------------
    # sum and prod of one long vector: the sum is added in another order than written
    fusion("passes/fuse/legality.py", "if len(home.orders | guest.orders) > 1:",
           "if len(home.orders) > 1 or len(guest.orders) > 1:", blame="tensor_to_loop",
           ops="reduce_sum reduce_prod"),
    # exp(x - m) / s + tanh(x - m) / t by rows: both are kept in the buffer of the one result
    fusion("passes/fuse/stages.py", "out.type == v.type and until >= last and i not in claimed):",
           "out.type == v.type and until >= last):", blame="tensor_to_loop"),

    # -- aliasing -------------------------------------------------------------------------------------------------
    # z = y - max(y) by rows, and from it 2 z and y - sum(z), y a temporary: 2 z is written over y, which is read again
    aliasing("dialects/tensor/kernel.py", "return bool(self.last_reads[operand] <= min(written))", "return True"),
    # a loop that swaps what it carries, a, b = b, a
    aliasing("passes/analysis/kernel_boundary.py", "        return v is loop.carried[i]\n",
             "        return v in loop.carried\n"),
    # a `while` that reads a value computed before it: after its first turn something else lies there
    aliasing("passes/bufferize/lifetimes.py", "if isinstance(around, scf.For | scf.While):",
             "if isinstance(around, scf.For):"),
    # a later temporary that is larger than an earlier one whose slot it takes overlaps the next slot
    aliasing("passes/bufferize/plan.py", "self.slots[i].needed = max(bytes, size)", "self.slots[i].needed = bytes"),

    # -- loops ----------------------------------------------------------------------------------------------------
    # x @ w.T, few rows and 260 terms: where a block of terms ends as the whole ones do, the rest is added twice
    loops("passes/lower_kernel/nest.py",
          'cut = arith.CmpI("sgt", self.number(end), self.number(extent - rest)).result',
          'cut = arith.CmpI("sge", self.number(end), self.number(extent - rest)).result', ops="dot_general"),
    # the maximum of numbers all of which are -inf
    loops("dialects/combining.py", "return -np.inf if isinstance(dtype, FloatType)",
          "return -3.4028234663852886e38 if isinstance(dtype, FloatType)", blame="tensor_to_loop",
          ops="reduce_max"),

    # -- tails and accesses ---------------------------------------------------------------------------------------
    # flip(x) of a length that fills no whole vectors
    tails("passes/lower_kernel/memory.py",
          "        mask = vector.Shuffle(mask, mask, order).result\n", "", ops="reverse"),
    # x[::2] * 2: the second half of every vector
    tails("passes/lower_kernel/memory.py", "where = scalar_index(low, start + 2 * first, access.tiles, point)",
          "where = scalar_index(low, start + first, access.tiles, point)", ops="slice"),

    # -- schedules ------------------------------------------------------------------------------------------------
    # x[:, :40] + 1: two dimensions become one although a row of memory is longer
    schedule("passes/coalesce_dimensions.py",
             "return axis if op.buffer.type.shape[axis + 1] == kernel.domain[d + 1] else None", "return axis",
             blame="coalesce_dimensions", ops="slice"),
    # a kernel large enough for threads, shared along two dimensions: a part's last, incomplete row of blocks
    schedule("passes/loop_to_scf/partition.py",
             "rows = low.number(sizes.divide(first, width)), low.number(_blocks(last, width))",
             "rows = low.number(sizes.divide(first, width)), low.number(sizes.divide(last, width))",
             blame="loop_to_scf"),

    # -- scf_to_llvm ----------------------------------------------------------------------------------------------
    # int64 numbers below zero as bfloat16
    lowering("passes/lower_to_llvm/arithmetic.py", "    if signed:\n", "    if not signed:\n", ops="cast"),
    # float64 numbers below zero, just past the middle of two bfloat16
    lowering("passes/lower_to_llvm/arithmetic.py",
             'away = llvm.FCmp("ogt", llvm.FAbs(back).result, llvm.FAbs(x).result).result',
             'away = llvm.FCmp("ogt", back, x).result', ops="cast"),

    # -- emission -------------------------------------------------------------------------------------------------
    # maximum(NaN, 1.0)
    emission("backends/emit_llvm.py", "llvm.Freeze: lambda", 'llvm.Maximum: _call_of("maxnum"), llvm.Freeze: lambda',
             ops="maximum reduce_max"),
    # a constant array of zeros some of which are -0.0
    emission("backends/emit_llvm.py", """if any(raw) else "zeroinitializer"\n""",
             """if op.value.any() else "zeroinitializer"\n"""),

    # -- the call -------------------------------------------------------------------------------------------------
    # the second call with a transposed numpy array
    call("backends/cpu/wrapper.py",
         "flags = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE if i in self.interface.donated else 0)",
         "flags = layout.ALIGNED | (layout.WRITEABLE if i in self.interface.donated else 0)"),
    # the second call of f(x, x), the first of which is donated: no error, and the second is overwritten
    call("backends/cpu/checked_call.py",
         'self.guard((a.compare("ule", found, a.i64(1)), partial(self.overlap, i)))',
         'self.guard((a.compare("ule", found, a.i64(2)), partial(self.overlap, i)))'),

    # -- cache keys -----------------------------------------------------------------------------------------------
    # one function compiled first as it is and then with checked=True
    cache("backends/cpu/toolchain.py",
          "str(pipeline.order(self.target.machine, self.added)), repr(self.target)",
          "str(pipeline.order(self.target.machine)), repr(self.target)"),
    # one function compiled with donate=0 and with donate=1
    cache("backends/fingerprint.py", '_MESSAGES_ONLY = frozenset({"arg_names"})',
          '_MESSAGES_ONLY = frozenset({"arg_names", "donate"})'),
    # f(x, 1.5) and then f(x, a float64 array of no dimensions), x of integers
    cache("frontend/signature.py",
          "key.append(wanted if wanted is not None else (type(x) if weak else (array.dtype, array.shape)))",
          "key.append(wanted if wanted is not None else (array.dtype, array.shape))"),

    # -- GPU ------------------------------------------------------------------------------------------------------
    # the sum of rows by 64 threads or more: a thread reads what another one has not stored yet
    gpu("passes/loop_to_gpu/collective.py",
        "    gpu.Barrier()\n    found: list[Value] = []", "    found: list[Value] = []"),
    # x + 1 of a length that fills no whole block of threads: one thread writes past the end
    gpu("passes/loop_to_gpu/threads.py",
        'there = arith.CmpI("slt", self.number(unit), self.number(self.total)).result',
        'there = arith.CmpI("sle", self.number(unit), self.number(self.total)).result'),
)
