"""Faults of the latest parts and of older ones that had none yet, written by reading the compiler, not the checks."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    call,
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

BINARY, COMPARE, ELEMENTWISE, REDUCE = (f"dialects/tensor/{name}.py"
                                        for name in ("binary", "compare", "elementwise", "reduce"))
NEST, COMPUTE, INTERLEAVED = (f"passes/lower_kernel/{name}.py" for name in ("nest", "compute", "interleaved"))

FAULTS: tuple[Fault, ...] = (
    # -- recorder -------------------------------------------------------------------------------------------------
    # interpolate(x, scale_factor=2, mode="bicubic"): the first pixels of each row
    recorder("frontend/functions/resize.py", "source = source if cubic else np.maximum(source, 0)",
             "source = np.maximum(source, 0)", ops="take"),
    # conv2d(x, w, padding="same") with filters of even size: the image is moved by one pixel
    recorder("frontend/functions/convolution.py", "low = tuple(n // 2 for n in total)",
             "low = tuple((n + 1) // 2 for n in total)", ops="convolution"),
    # cumsum of int8 stays int8, and overflows
    recorder("frontend/functions/scan.py",
             "as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_inexact else i64)",
             "as_ir(dtype) if dtype is not None else i64 if x.type.dtype.is_bool else x.type.dtype)",
             ops="cumulative"),
    # gradient(y, spacing=(x,)), the places x not evenly spaced
    recorder("frontend/functions/calculus.py", "inside = tracer((before * b + after * a) / (a + b))",
             "inside = tracer((before * a + after * b) / (a + b))"),
    # cross_entropy(x, t, weight=w, label_smoothing=0.1): the mean of the smooth part counts samples, not their weights
    recorder("frontend/functions/losses/classification.py",
             "smooth = R.sum(smooth) / _total_weight(t, valid, weight, x, at)",
             "smooth = R.sum(smooth) / R.sum(valid)"),
    # a quantised convolution with padding=1, whose input has negative numbers: the edges of its image
    recorder("frontend/functions/quantized.py", "w, zero = tracer(weight), cast(tracer(zero_point), ui8)",
             "w, zero = tracer(weight), cast(tracer(0), ui8)", ops="convolution pad"),

    # -- derivatives and expansions -------------------------------------------------------------------------------
    # max_pool2d(relu(x), 2): where all four are 0, the gradient goes to the last of them
    derivative("dialects/tensor/pooling.py",
               "candidate = select(maximal, number, full(math.prod(self.size), number))\n"
               '        first = tensor.ReduceMin(candidate, tuple(inside), "chain").result',
               "candidate = select(maximal, number, full(-1, number))\n"
               '        first = tensor.ReduceMax(candidate, tuple(inside), "chain").result',
               rule="tensor.max_pool", ops="max_pool"),
    # the gradient of gelu(x, approximate="tanh")
    derivative("dialects/tensor/activation.py", "inner = (x * x * (3 * 0.044715) + 1)",
               "inner = (x * x * 0.044715 + 1)", rule="tensor.gelu", ops="gelu"),
    # the gradient of logcumsumexp where rows begin with -inf, as masked ones do: NaN
    derivative("dialects/tensor/cumulative.py",
               "return select(compare(\"eq\", result, full(-math.inf, result)), full(0, result), result)",
               "return result", rule="tensor.logcumsumexp", ops="logcumsumexp"),
    # scatter_reduce(x, index, updates, "amax") where an element of x and its update are equal: both get all of it
    derivative("dialects/tensor/scatter.py",
               "count = self.scattered(cast(old, ct.type.dtype), cast(new, ct.type.dtype), \"add\")",
               "count = self.scattered(full(0, ct, self.x.type.shape), cast(new, ct.type.dtype), \"add\")",
               rule="tensor.scatter", ops="scatter scatter_along"),
    # attention with a mask of floats that is learned, such as a bias by position: its gradient is scaled, too
    derivative("dialects/tensor/attention.py", "found.append(unbroadcast(of_scores, self.mask))",
               "found.append(unbroadcast(scaled, self.mask))", rule="tensor.attention", ops="attention"),
    # conv_transpose2d(x, w, stride=2, padding=1, output_padding=1): the gradient by w
    derivative("dialects/tensor/convolution.py",
               "Axis(axis.spread, span - axis.low, span - axis.high, axis.dilation)",
               "Axis(axis.spread, span - axis.high, span - axis.low, axis.dilation)",
               rule="tensor.convolution", ops="convolution"),
    # the second derivative of prod(x) where two elements are 0
    derivative(REDUCE, 'several = select(compare("eq", count, full(2, x)), self.spread(p) * '
               "(self.spread(sum_of_zeros) - x), zero)", "several = zero", rule="tensor.reduce_prod",
               ops="reduce_prod"),
    # atan2(0.0, -0.0) is 0, not pi
    numerics("dialects/expansions/inverse_trigonometry.py", 'negative = b.cmp("olt", b.copysign(one, x), zero)',
             'negative = b.cmp("olt", x, zero)', ops="atan2"),

    # -- rewrite rules --------------------------------------------------------------------------------------------
    # x ^ x is x
    rule(BINARY, "@rewrite(And, Or)\ndef idempotent", "@rewrite(And, Or, Xor)\ndef idempotent", rule="idempotent",
         ops="xor"),
    # 1 / (1 / x) is x, even where 1 / x is rounded or infinite
    rule(ELEMENTWISE, "@rewrite(Neg, LogicalNot)", "@rewrite(Neg, LogicalNot, Reciprocal)", rule="involution",
         ops="reciprocal"),
    # x.amax(1).amin(), the least of the maxima of rows, is the least element
    rule(REDUCE, "if not isinstance(inner, ReduceOne) or type(inner) is not type(op) or len(op.x.uses) > 1:",
         "if not isinstance(inner, _ReduceExtremum | _ReduceBool) or len(op.x.uses) > 1:", rule="reduce_twice",
         ops="reduce_max reduce_min"),
    # x.float().double() of int32 beyond 2^24: not rounded to float32
    rule(COMPARE, 'digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}',
         'digits = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}', rule="cast_of_exact_cast", ops="cast"),
    # ~(x > y) of integers, where they are equal
    rule(COMPARE, '"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}', '"lt": "ge", "ge": "lt", "gt": "lt", "le": "gt"}',
         rule="not_of_compare", ops="logical_not compare"),
    # x | -1, or a mask | True, is x
    rule(BINARY, "if is_splat(op.rhs, ones if isinstance(op, And) else 0):",
         "if is_splat(op.rhs, ones if isinstance(op, And | Or) else 0):", rule="bits_with_constant", ops="or"),
    # 1 / a constant tensor of 0.0 and -0.0
    rule("dialects/tensor/source.py", "if (bits != bits[0]).any() or (", "if (flat != flat[0]).any() or (",
         rule="constant_of_equal_elements", ops="constant"),

    # -- layouts, fusion, merging ---------------------------------------------------------------------------------
    # a frozen convolution whose image becomes one of rows, x.flatten(2), as for attention: pixels and channels mixed up
    layout("passes/assign_layouts.py",
           "for old, new in sorted(_groups(op.x.type.shape, op.shape, ones), key=lambda group: place[group[0][0]]):",
           "for old, new in _groups(op.x.type.shape, op.shape, ones):", ops="convolution reshape"),
    # x @ w and linear(y, w) in a frozen function, w square: the second is y @ w, not y @ w.T
    layout("passes/hoist_constants/panels.py", "replace(columns, side=0)\n", "replace(columns, side=0, axis=0)\n",
           blame="hoist_constants", ops="dot_general"),
    # e = exp(x), y = e / e.sum(-1), z = e * y.amax(-1) by rows: e is kept in the memory of y, which is there sooner
    fusion("passes/fuse/stages.py", "slot = _memory(stages, v, max(s for s, _ in needed), claimed,",
           "slot = _memory(stages, v, min(s for s, _ in needed), claimed,", ops="exp reduce_sum"),
    # q[0] @ w, k[0] @ w, q[1] @ w, by one kernel: the first two have the same index, and so does the third
    merging("passes/outline.py", "if any(x.indices[i] != at for x in others)]",
            "if any(x.indices[i] != at for x in others[:1])]", ops="slice"),

    # -- aliasing -------------------------------------------------------------------------------------------------
    # x[i:i + 900] = 2 * x[j:j + 900] where i is a bit more than j
    aliasing("dialects/tensor/dynamic.py",
             "isinstance(user, DynamicSlice) and user.starts == self.starts\n", "isinstance(user, DynamicSlice)\n",
             ops="dynamic_update_slice"),
    # a loop that carries x = x @ w: each row is written while the product reads it
    aliasing("passes/bufferize/plan.py",
             "if hint.over is not None and (self.storage_of.get(hint.over) is not hint.storage\n"
             "                                      or not self.life.fits_in_place(op, v, hint.over)):",
             "if hint.over is not None and self.storage_of.get(hint.over) is not hint.storage:", ops="dot_general"),
    # x + softmax(x, -1), x a product that nothing else reads: the exponentials are written over x, which is read again
    aliasing("dialects/tensor/kernel.py",
             "written = [self.stores[result], *(op.attrs[\"stage\"] for op in self.body.block\n"
             "                                          if op.attrs.get(\"materialize\") == result)]",
             "written = [self.stores[result]]", ops="softmax"),

    # -- loops ----------------------------------------------------------------------------------------------------
    # dynamic_update_slice(x, y, (i,)) + 1: the first element of y is left out
    loops("passes/tensor_to_loop/windows.py",
          'inside = build.both(inside, build.compare("sge", i, start))',
          'inside = build.both(inside, build.compare("sgt", i, start))', ops="dynamic_update_slice"),
    # a dynamic slice that starts at 128 or more, given as uint8
    loops("passes/tensor_to_loop/windows.py", "arith.IndexCast(cast_scalar(x, dtype, IntType(64)), index)",
          "arith.IndexCast(cast_scalar(x, IntType(dtype.width), IntType(64)), index)", ops="dynamic_slice"),
    # sign(NaN) is 1
    loops("passes/tensor_to_loop/scalar.py", 'arith.CmpF("one", x, zero).result, unit, zero)',
          'arith.CmpF("une", x, zero).result, unit, zero)', ops="sign"),

    # -- schedules, vectors and tails -----------------------------------------------------------------------------
    # cat([a, b], -1) where a has 24 columns: the vector that both share is all of one of them
    schedule(COMPUTE, 'compare.predicate in ("slt", "sge") and first == [0, 0]',
             'compare.predicate in ("slt", "sge") and first[0] == 0', ops="concat pad"),
    # a convolution of quantised activations: bytes above 127 are negative, and weights are not
    schedule(INTERLEAVED, "*((a, b) if in_lanes_first else (b, a))", "*((b, a) if in_lanes_first else (b, a))",
             ops="dot_general convolution"),
    # a product of bfloat16 with negative numbers of 2^-70: their products are taken for zeros
    schedule(INTERLEAVED, "below = arith.SubI(arith.AndI(x, magnitude).result, one).result",
             "below = arith.SubI(x, one).result", ops="dot_general"),
    # amax over images of 5 x 5 whose channels are last in memory, all negative: a pixel of zeros after them counts
    schedule(COMPUTE, "low.define(op.result, lambda p: low.valid(op.dim, p[op.dim]))",
             "low.define(op.result, lambda p: low.valid(op.dim, p[op.dim] - 1))", ops="reduce_max reduce_prod"),
    # x.sum(1) and (x * x).amax(1) in one kernel, of rows of thousands of elements: the maxima of runs are added
    schedule(NEST, "kinds = [kind for a, kind in zip(args, op.kinds) for b, _ in keys if b is a]",
             "kinds = [op.kinds[0]] * len(keys)", ops="reduce_sum reduce_max"),

    # -- lowering -------------------------------------------------------------------------------------------------
    # float64 to float16 or bfloat16: rounded to float32 before, which makes ties of what is just above or below one
    lowering("passes/lower_to_llvm/arithmetic.py", "        x = _odd_f32(x)\n",
             "        x = llvm.FPTrunc(x, with_element(x.type, f32)).result\n", ops="cast"),
    # int32 to bfloat16: likewise
    lowering("passes/lower_to_llvm/arithmetic.py", "if width(x) < 24: ", "if width(x) <= 32: ", ops="cast"),

    # -- calls and cache keys -------------------------------------------------------------------------------------
    # a product that was called with several shapes, then within autocast with a new one: of float32 still
    call("mlc/call.py", "return (tuple(out), self.device, self.autocast, self._autograd()",
         "return (tuple(out), self.device, self._autograd()"),
    # a function of w that calls backward, first where w has no gradient and then where it has one, to be added to
    cache("mlc/call.py", "(m.requires_grad, m.node is None, m.grad is not None, *m.hooks, *m.after)",
          "(m.requires_grad, m.node is None, *m.hooks, *m.after)"),
)
