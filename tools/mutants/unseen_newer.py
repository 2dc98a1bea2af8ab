"""Faults of the newer parts, written as those of `unseen.py`: by reading the compiler, not the checks."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    call,
    derivative,
    emission,
    gpu,
    loops,
    lowering,
    merging,
    recorder,
    rows,
    rule,
    transform,
)

state = rows("state")
parts = rows("complex", "decompose_complex")
quantized = rows("quantized", "loop_to_scf")
fusion = rows("fusion", "fuse")
schedule = rows("schedule")

WRITES, CAPTURED = "frontend/functionalization.py", "backends/cpu/captured_call.py"
LANES, BLOCKS = "passes/lower_kernel/dequantize.py", "passes/lower_kernel/blocks.py"

FAULTS: tuple[Fault, ...] = (
    # -- writes to tensors that are recorded ----------------------------------------------------------------------
    # x.permute(1, 2, 0).mul_(y) in a compiled function: the write goes back by the same permutation
    recorder(WRITES, "order = tuple(sorted(range(len(op.perm)), key=op.perm.__getitem__))", "order = tuple(op.perm)"),
    # v = x[0]; x.add_(1); v is what it was before
    recorder(WRITES, "    base.value, base.weak = value, False\n    _spoil(base)\n    _renew_views(base)\n",
             "    base.value, base.weak = value, False\n    _spoil(base)\n"),
    # y = x.t().flatten(), a copy, changes with x
    recorder(WRITES, 'frozenset({"reshape", "flatten", "unflatten", "ravel"})',
             'frozenset({"reshape", "unflatten", "ravel"})'),
    # w.detach().mul_(2), w a parameter: its gradient is doubled
    recorder(WRITES, "if captures is not None and captures.is_leaf(base) and mode.enabled:        # by a detached view",
             "if captures is None and False:"),
    # y = x if c else x + 1 with a tensor c, then y.add_(1): x stays as it is, and no error says so
    recorder(WRITES, "return uncertain(result, *outer) if isinstance(result, Tracer) and outer else result",
             "return result"),

    # -- what a function reaches ----------------------------------------------------------------------------------
    # AdamW with betas (0.9, 0.99), changed between two steps: both moments have the first of them
    state("frontend/captured_inputs.py", "found = found[self.index]", "found = found[0]"),
    # a step with a learning rate that a scheduler changes, and dropout: of several such inputs one is renewed
    state("mlc/fast_path.py", "return inputs, before if len(writers) > 1 else writers[0] if writers else None",
          "return inputs, writers[0] if writers else None"),
    # v = w[0] between two steps: the second one gives w other memory, and v is what it was
    state("backends/cpu/captured.py", '        rows += [(_address(t, "_storage"), None) for t in changed]\n', ""),
    # a = w.numpy() between two steps, or a tensor in a list: the step after next writes into it
    state("backends/cpu/support.py",
          'a.branch(a.compare("eq", a.load(I64, array, layout.OB_REFCNT), count), single, other)',
          'a.branch(a.compare("ule", a.load(I64, array, layout.OB_REFCNT), a.i64(2)), single, other)'),
    # w.data = other between two calls: the second reads the former elements
    state(CAPTURED, "    a.store(a.load(PTR, array, layout.ARRAY_DATA), _pointer(a, state, number))\n", ""),
    # f(x), which changes w in place, and then f(w): it reads w while it changes it, or not its new value
    state("backends/cpu/wrapper.py", """        if self.reached.changed:
            self.need(a.compare("eq", a.call("is_changed", self.self, obj), a.false))
""", ""),

    # -- autograd, autocast, sparse -------------------------------------------------------------------------------
    # x[0] = y, eagerly: the gradient of what was there before
    recorder("frontend/autograd/view_node.py", "            view.zero_()\n            found.append(rest)\n",
             "            found.append(rest)\n"),
    # two hooks of a node, of which one doubles the gradient and the other clips it
    recorder("frontend/autograd/hooks.py", "for hook in list(self.after.values()):",
             "for hook in reversed(self.after.values()):"),
    # a product of float64 matrices under autocast
    recorder("frontend/autocast.py",
             "eligible = x.dtype.is_floating_point and x.dtype is not dtypes.float64 and x.dtype is not target",
             "eligible = x.dtype.is_floating_point and x.dtype is not target"),
    # a sparse matrix by one whose indices are not in order
    recorder("frontend/functions/sparse/products.py",
             'x, y = _matrix(a, "mm"), _matrix(b, "mm").coalesce()', 'x, y = _matrix(a, "mm"), _matrix(b, "mm")'),
    # x.to_sparse_csc().to_sparse_csr()
    recorder("frontend/functions/sparse/convert.py",
             'return coo(call("stack", [*lead, *pair]), values, x.shape, kind.compressed == 0)',
             'return coo(call("stack", [*lead, *pair]), values, x.shape, True)'),

    # -- the call -------------------------------------------------------------------------------------------------
    # x + 2**64, x of integers, after x + 1: an error becomes x - 1
    call("backends/cpu/pattern_match.py",
         '        a.need(a.compare("eq", a.load(I32, overflow), a.i32(0)))\n', ""),
    # mlc.exp(x) after the same with an x that required no gradient: nothing is recorded
    call("backends/cpu/pattern_match.py", '    a.store(a.i64(1), frame, offset(Frame, "recorded"))\n', ""),

    # -- cache keys -----------------------------------------------------------------------------------------------
    # a compiled product, first within autocast and then without
    cache("mlc/call.py", "            self.lookup = self.lookup, self.autocast\n", "            pass\n"),
    # two functions with constants of 10,000 numbers that differ at the end
    cache("backends/fingerprint.py", "hashlib.sha256(flat.view(np.uint8).data).hexdigest()",
          "hashlib.sha256(flat.view(np.uint8).data[:4096]).hexdigest()"),
    # `if w.item() > 0` in a compiled function, w a tensor of outside that is then changed
    cache("mlc/dispatch_cache.py", '        self.reached[0].places += [Payload("", t) for t in captures.read]\n', ""),
    # a step that calls backward, first within no_grad or with frozen parameters
    cache("mlc/call.py", "        return mode.enabled, *(\n", "        return True, *(\n"),

    # -- rewrite rules --------------------------------------------------------------------------------------------
    # max_pool1d(x, 2, stride=2, dilation=2)
    rule("dialects/tensor/window.py", "if isinstance(n, int) and stride == size and dilation == 1 else None",
         "if isinstance(n, int) and stride == size else None", rule="windows_apart", ops="windows"),
    # a product of two batch axes, given in the order 1, 0, along both of which y is repeated
    rule("dialects/tensor/contract.py",
         "in_order = op.batch == (*kept, *dropped) and freed == sorted(freed) and not any(",
         "in_order = op.batch == (*kept, *dropped) and not any(", rule="product_with_repeated", ops="dot_general"),
    # pad(x, 0) + pad(y, 1)
    rule("dialects/tensor/slicing.py", "if not (is_splat(a.value, 0) and is_splat(b.value, 0)):",
         "if not is_splat(a.value, 0):", rule="add_of_padded", ops="pad"),
    # the outer product of vectors with -0.0 and 0.0
    rule("dialects/tensor/contract.py", "return Add(product, full(0, product, op.result.type.shape)).result",
         "return product", rule="dot_of_single_terms", ops="dot_general"),

    # -- derivatives and transforms -------------------------------------------------------------------------------
    # x[[1, 1]] = y: both of the rows get the cotangent, not the last one alone
    derivative("dialects/tensor/scatter.py", "select(kept, self.taken(ct), full(0, ct))", "self.taken(ct)",
               rule="tensor.scatter", ops="scatter scatter_along"),
    # scatter_reduce(x, "prod") where an element of x is 0: the gradient by the updates
    derivative("dialects/tensor/scatter.py", "self.scattered(select(zero_x, one, x), select(zero_u, one, u), \"mul\")",
               "self.scattered(x, select(zero_u, one, u), \"mul\")", rule="tensor.scatter", ops="scatter"),
    # jvp of an operation whose rule uses the cotangent twice: maximum, where
    transform("passes/differentiate/forward.py",
              "pending[v] = plus(pending[v], part) if v in pending else part", "pending[v] = part"),
    # vmap of `for i in range(start, n)` where start differs between elements
    transform("passes/differentiate/batch_control.py",
              'counts = both(counts, compare("ge", number, first))', "counts = counts"),

    # -- complex and quantised tensors ----------------------------------------------------------------------------
    # sqrt(-1 - 0i)
    parts("dialects/tensor/parts.py", "    below, endless = is_negative(b), _is_infinite(b)\n",
          '    below, endless = compare("lt", b, zero), _is_infinite(b)\n',
          ops="sqrt"),
    # the product of five complex numbers
    parts("dialects/tensor/parts.py", "if 2 * half < shape[axis]:", "if 2 * half < shape[axis] - 1:",
          ops="reduce_prod"),
    # a product of complex matrices
    parts("dialects/tensor/parts.py", "again(op, [a, d]) + again(op, [b, c])", "again(op, [a, d]) - again(op, [b, c])",
          ops="dot_general"),
    # quads of integers the third of which is negative
    quantized("dialects/tensor/quantized.py", "full((1 << width) - 1, part)).result if i < count - 1",
              "full((1 << width) - 1, part)).result if i < count - 2", ops="quantized_dot", blame="decompose"),
    # the transpose of a quantised matrix: lanes lie in different rows
    quantized(LANES, "            and d not in dims_of(*row) and HALF % low.lanes == 0",
              "            and HALF % low.lanes == 0", ops="dequantize"),
    # q4_k, where a block has several vectors: each has the scales of the first
    quantized(LANES, "order = tuple((point[d] + lane) // each for lane in range(low.lanes))",
              "order = tuple(lane // each for lane in range(low.lanes))", ops="dot_blocks"),
    # the last rows of a matrix, fewer than a vector has lanes: those beyond are read
    quantized("passes/lower_kernel/quads.py", "min(lane, max(0, count - 1))", "lane", ops="quantized_dot"),
    # q6_k: scales are negative, too
    quantized("passes/lower_kernel/quads.py", "byte = arith.ShRSI(top,", "byte = arith.ShRUI(top,",
              ops="quantized_dot"),
    # q4_k: the scales of 32 and more of the second half of a block
    quantized(BLOCKS, "arith.ShLI(bits(top, 6, 3), arith.constant(4, i32))",
              "arith.ShLI(bits(top, 6, 1), arith.constant(4, i32))", ops="dequantize"),

    # -- fusion and aliasing --------------------------------------------------------------------------------------
    # x[a] = y, then x[b] = z in one loop
    fusion("passes/fuse/legality.py", "if _is_updated(home, guest) or _is_updated(guest, home):",
           "if _is_updated(guest, home):", ops="dynamic_update_slice"),
    # y = 2 x and y + flip(y)
    fusion("passes/fuse/legality.py", "if producer.ops[s] is None or there is None or not at_own:",
           "if producer.ops[s] is None or there is None:", ops="reverse"),
    # f(y, y), where f may write its result over the first argument
    aliasing("passes/bufferize/lifetimes.py", "        if op.operands.count(operand) != 1:\n            return False\n",
             ""),
    # a temporary of which a reshape is read later than itself
    aliasing("passes/bufferize/lifetimes.py", """            if isinstance(op, tn.Reshape):
                self.last[op.x] = max(self.last[op.x], self.last.get(op.result, -1))
""", ""),
    # y = 2 x; z = y + flip(y): the slot of y is free one step too early
    aliasing("passes/bufferize/plan.py", "if slot.free_after >= step:", "if slot.free_after > step:"),

    # -- loops and schedules --------------------------------------------------------------------------------------
    # an update at the constant start 7 of 8 elements that is 3 long
    loops("passes/tensor_to_loop/windows.py", "out.append(max(0, min(int(v.op.value), most)))",
          "out.append(int(v.op.value))", ops="dynamic_update_slice"),
    # the gradient of an average over windows: elements before the first window
    loops("passes/tensor_to_loop/windows.py", 'build.conjunction(build.compare("sge", start, 0), '
          'build.compare("slt", window, op.x.type.shape[op.axis]))',
          'build.compare("slt", window, op.x.type.shape[op.axis])', ops="place"),
    # a kernel with a sum over the first axis, stored by rows, beside its elements: several threads write the sum
    schedule("passes/parallelize.py", "kernel.domain[d] != 1 and not all(d in dims for dims in stores)",
             "kernel.domain[d] != 1 and not any(d in dims for dims in stores)", blame="parallelize"),
    # a large product, whose panels are packed once and not for each tile of terms
    schedule("passes/schedule/transforms.py",
             "next(op for op in enclosing_loops(reader) if op.dim not in factor.type.dims)",
             "enclosing_loops(reader)[0]",
             blame="vectorize", ops="dot_general"),

    # -- lowering and emission ------------------------------------------------------------------------------------
    # fmod(6, 3)
    lowering("passes/lower_to_llvm/remainder.py", "%fits = llvm.icmp uge %twice, %mb",
             "%fits = llvm.icmp ugt %twice, %mb", ops="fmod"),
    # a kernel over threads whose size is a symbol: the last, incomplete block
    lowering("passes/scf_to_llvm/parallel.py", "        distance = low.plus(distance, low.plus(step, -1))\n", ""),
    # a vector constant of 0.0 and -0.0
    emission("backends/emit_llvm.py", "if len(set(texts)) == 1:", "if len(set(lanes.tolist())) == 1:"),
    # x[0] and x[1] by the same kernel, as in a loop that was written out
    merging("passes/outline.py", "numbers = [arith.constant(found.indices[i], index) for i in differ]",
            "numbers = [arith.constant(first.indices[i], index) for i in differ]", ops="slice"),

    # -- GPU ------------------------------------------------------------------------------------------------------
    # a product of three stages: a block is read while its copy is on the way
    gpu("passes/loop_to_gpu/stages.py", "numGroups=ahead - 1)\n            if self.by",
        "numGroups=ahead)\n            if self.by"),
    # the same: a stage is filled again while another thread still reads it
    gpu("passes/loop_to_gpu/stages.py", "space=\"cta\")\n            gpu.Barrier()\n", "space=\"cta\")\n"),
    # the sum of rows by several groups of threads: each reads what the others have not stored yet
    gpu("passes/loop_to_gpu/rows.py", "memref.Store(v, buffer, (place,))\n        gpu.Barrier()",
        "memref.Store(v, buffer, (place,))"),
)
