"""Seeded faults of the recorder, the code generator, calls, the compile cache and GPU kernels."""

from __future__ import annotations

from mlc.tools.mutants.fault import Fault, rows

ARITHMETIC, EMIT, WRAPPER, SUPPORT = ("passes/lower_to_llvm/arithmetic.py", "backends/emit_llvm.py",
                                      "backends/cpu/wrapper.py", "backends/cpu/support.py")
ABSTRACT = "frontend/abstract_values.py"
NODE = "frontend/autograd/function_node.py"
RUNTIME, LOOPS, CHECKED = "frontend/script/runtime.py", "frontend/loop_carried.py", "backends/cpu/checked_call.py"
DIRECT = "    if issubclass(op, arith.Elementwise) and op not in BITWISE and op not in OWN_ROWS"
ROW = "llvm.FNeg: lambda"
lower = rows("lowering", "scf_to_llvm")
emit = rows("emission")
call = rows("call")
cache = rows("cache key")
recorder = rows("recorder")
backward = rows("backward")
gpu = rows("gpu", "loop_to_gpu")

FAULTS: tuple[Fault, ...] = (
    *(lower(ARITHMETIC, f"{DIRECT}}}\n", f"{DIRECT}}} | {{{wrong}}}\n", ops=ops) for wrong, ops in (
        ("arith.ShRSI: llvm.LShr", "shr sign floordiv"), ("arith.MaxSI: llvm.UMax", "maximum"),
        ("math.RoundEven: llvm.Floor", "round"), ("arith.MinimumF: llvm.Maximum", "minimum reduce_min"))),
    lower(ARITHMETIC, "return llvm.INSTRUCTIONS[type(op)](x, target_type(op, x)).result", "cls = llvm.ZExt if "
          "isinstance(op, arith.ExtSI) else llvm.INSTRUCTIONS[type(op)]\n    return cls(x, target_type(op, x)).result",
          ops="cast"),
    lower(ARITHMETIC, "number(0x8000), number(0x7FFF)", "number(0x8001), number(0x8000)", ops="cast add"),
    lower(ARITHMETIC, "chosen = llvm.Select(llvm.FCmp(\"uno\", x, x).result, quiet, rounded).result", "chosen = "
          "rounded",
          ops="cast"),
    lower(ARITHMETIC, "cls = llvm.SIToFP if isinstance(op, arith.SIToFP) else llvm.UIToFP", "cls = llvm.SIToFP",
          ops="cast"),
    lower(ARITHMETIC, "yes, no = low.env[op.true_value], low.env[op.false_value]",
          "no, yes = low.env[op.true_value], low.env[op.false_value]", ops="select"),
    lower("passes/lower_to_llvm/vectors.py", "i if i < m else i - m + longest for i in op.mask", "i for i in op.mask"),
    lower("passes/lower_to_llvm/vectors.py", "row = llvm.ICmp(\"slt\", numbers,", "row = llvm.ICmp(\"sle\", numbers,"),
    lower("passes/lower_to_llvm/vectors.py", "cut = llvm.SMax(llvm.SMin(last, llvm.constant(lanes, i64)).result, "
          "llvm.constant(0, i64)).result", "cut = last"),
    lower("passes/lower_to_llvm/control.py", "((yes, op.then_body), (no, op.else_body))",
          "((yes, op.else_body), (no, op.then_body))" ),
    lower("passes/lower_to_llvm/control.py", "llvm.CondBr(llvm.ICmp(\"slt\", head.args[0], upper)",
          "llvm.CondBr(llvm.ICmp(\"sle\", head.args[0], upper)"),
    lower("passes/scf_to_llvm/parallel.py", "distance = low.plus(distance, low.plus(step, -1))", "pass"),
    lower("passes/lower_to_llvm/memory.py", "if shift != 0:\n        pointer", "if shift == -1:\n        pointer"),
    lower("passes/lower_to_llvm/memory.py", "rest = low.one(op.pass_thru)\n    return [llvm.MaskedLoad",
          "rest = llvm.Poison(low.one(op.pass_thru).type).result\n    return [llvm.MaskedLoad"),
    lower("passes/lower_to_llvm/remainder.py", "%fits = llvm.icmp uge %twice, %mb", "%fits = llvm.icmp ugt %twice, %mb",
          ops="fmod rem"),
    lower("passes/lower_to_llvm/remainder.py", "%signed = llvm.or %packed, %sign", "%signed = llvm.or %packed, %zero",
          ops="fmod rem"),
    emit(EMIT, ROW, 'llvm.AShr: _two("lshr"), ' + ROW, ops="shr sign"),
    emit(EMIT, ROW, 'llvm.FMul: _two("fmul fast"), ' + ROW, ops="mul"),
    emit(EMIT, ROW, 'llvm.FAdd: _two("fadd nsz"), ' + ROW, ops="add"),
    emit(EMIT, "bits = (bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29) if np.isnan(array) else \\\n"
         "            int(array.astype(np.float64).view(np.uint64))",
         "bits = int(np.abs(array).astype(np.float64).view(np.uint64))", ops="constant full"),
    emit(EMIT, "if len(set(texts)) == 1:", "if len(set(texts)) <= 2:"),
    emit(EMIT, ROW, 'llvm.SMin: _call_of("umin"), ' + ROW, ops="minimum"),
    emit(EMIT, "dest in seen and dest.args else \"\"", "dest in seen and not dest.args else \"\""),
    emit(EMIT, ROW, 'llvm.SIToFP: _cast("uitofp"), ' + ROW, ops="cast"),
    emit(EMIT, ROW, 'llvm.Ceil: _call_of("floor"), ' + ROW, ops="ceil"),
    call(WRAPPER, "dims = [a.load(I64, where, 8 * axis) for axis in range(type.rank)]",
         "dims = [a.load(I64, where, 8 * (type.rank - 1 - axis)) for axis in range(type.rank)]"),
    call(WRAPPER, "flags = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE",
         "flags = layout.ALIGNED | (layout.WRITEABLE"),
    call(WRAPPER, "a.store(self.arrays[alias], self.made, 8 * k)", "a.store(self.arrays[0], self.made, 8 * k)"),
    call(WRAPPER, "a.store(d, self.shape, 8 * axis)", "a.store(d, self.shape, 8 * (len(dims) - 1 - axis))"),
    call(WRAPPER, "a.call(\"PyTuple_SetItem\", out, a.i64(k), a.load(PTR, self.made, 8 * k))",
         "a.call(\"PyTuple_SetItem\", out, a.i64(count - 1 - k), a.load(PTR, self.made, 8 * k))"),
    call(CHECKED, "a.store(self.env[name], self.numbers, 8 * k)", "a.store(self.env[name], self.numbers, 0)"),
    call(CHECKED, "for i in interface.donated:\n            found", "for i in interface.donated[1:]:\n            "
         "found"),
    call(SUPPORT, "same = a.and_(same, a.compare(\"eq\", a.load(I32, found, layout.ARRAY_NDIM), rank))", "pass"),
    call(SUPPORT, "same = a.compare(\"eq\", found.args[0], a.load(PTR, at, offset(Binding, \"value\")))", "same = "
         "a.true"),
    cache("backends/fingerprint.py", "digest = hashlib.sha256(flat.view(np.uint8).data).hexdigest()",
          "digest = hashlib.sha256(flat.view(np.uint8)[:8].data).hexdigest()"),
    cache("backends/fingerprint.py", "if isinstance(value, np.ndarray):", "if name == \"value\":\n            return "
          "name\n"
          "        if isinstance(value, np.ndarray):"),
    cache("backends/fingerprint.py", "if name in _MESSAGES_ONLY:",
          "if name in (*_MESSAGES_ONLY, \"axis\", \"starts\"):"),
    # what compiled calls leave for backward: cotangents, their order, the arrays of another call, of another place
    backward(NODE, "*given.values(), *(next(operands)", "*[x * 2 for x in given.values()], *(next(operands)"),
    backward("passes/split_joint.py", "tuple(numbers[v] for v in self.saved)",
             "tuple(sorted(numbers[v] for v in self.saved))"),
    backward("passes/split_joint.py", "numbers.setdefault(results[n], len(primals) + n)",
             "numbers.setdefault(results[n], len(primals))"),
    backward("backends/cpu/captured_call.py", "a.sub(a.i64(-2), place), fresh)", "a.i64(0), fresh)"),
    backward("backends/cpu/captured.py", "state.spare[-place] = array", "state.spare[place - 1] = array"),
    backward("mlc/fast_path.py", "*(n for _, n in recorded.gradients if n is not None), *left]",
             "*(n for _, n in recorded.gradients if n is not None), *(left := [*left][::-1])]"),
    recorder(RUNTIME, "return then() if decided(test) else otherwise()", "return otherwise() if decided(test) else "
             "then()"),
    recorder(RUNTIME, "if_(not_(stop()), functools.partial(body, item)", "if_(stop(), functools.partial(body, item)"),
    recorder(RUNTIME, "return [left[-1][i] for i in wanted]", "return [left[0][i] for i in wanted]"),
    recorder(RUNTIME, "variables.put(before)\n            part()", "part()"),
    recorder(RUNTIME, "OPERATIONS[\"where\"](where, x, y)", "OPERATIONS[\"where\"](where, y, x)"),
    recorder(RUNTIME, "perhaps(a if word == \"and\" else b,", "perhaps(b if word == \"and\" else a,"),
    recorder(RUNTIME, "return and_(found, lambda: chain(right, cheap, *rest), cheap)",
             "return or_(found, lambda: chain(right, cheap, *rest), cheap)"),
    recorder(RUNTIME, "if n in variables.head and (", "if n in variables.live and ("),
    recorder(RUNTIME, "OPERATIONS[\"logical_not\"](truth(x, \"`not`\"))", "truth(x, \"`not`\")"),
    recorder(LOOPS, "scf.If(pred, Region(blocks[0]), Region(blocks[1]),", "scf.If(pred, Region(blocks[1]), "
             "Region(blocks[0]),"),
    recorder(ABSTRACT, "return strong if dtype_kind(weak.type.dtype)", "return weak if "
             "dtype_kind(weak.type.dtype)"),
    recorder(LOOPS, "starts = (self.at, *(number(0, i64).value for _ in t.shape))",
             "starts = (number(0, i64).value, *(number(0, i64).value for _ in t.shape))"),
    gpu("passes/loop_to_gpu/panels.py", "filled = [(pack, *elements(low, pack)) for pack in packs]\n    "
        "gpu.Barrier()\n",
        "filled = [(pack, *elements(low, pack)) for pack in packs]\n"),
    gpu("passes/loop_to_gpu/panels.py", "read them\n    gpu.Barrier()\n\n\ndef elements",
        "read them\n\n\ndef elements"),
    gpu("passes/loop_to_gpu/stages.py", "space=\"cta\")\n            gpu.Barrier()", "space=\"cta\")"),
    gpu("passes/loop_to_gpu/stages.py", "nvgpu.DeviceAsyncWait(group, numGroups=ahead - 1)",
        "nvgpu.DeviceAsyncWait(group, numGroups=ahead)"),
    gpu("passes/loop_to_gpu/collective.py", "gpu.Barrier()\n    found: list", "found: list"),
    gpu("passes/loop_to_gpu/threads.py", "self.least(at, end - 1)", "self.least(at, end)"),
    gpu("passes/loop_to_gpu/threads.py", "if read and self.size > kernel.schedule.tiles_per_cta and any(",
        "if False and any("),
)
