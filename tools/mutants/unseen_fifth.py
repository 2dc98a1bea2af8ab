"""Faults of functions, rules and kernels that had none yet, written by reading the compiler alone: the fifth list."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    call,
    derivative,
    fusion,
    loops,
    lowering,
    merging,
    numerics,
    recorder,
    rule,
)

FAULTS: tuple[Fault, ...] = (
    # -- recorder ------------------------------------------------------------------------------------------------------
    # the index of mode: the first one of the elements that are the mode, not the last
    recorder("frontend/functions/sort/quantiles.py",
             "found = element_at(x, tracer(best + most - 1), at,",
             "found = element_at(x, tracer(best), at,"),
    # cov(x, aweights=w): divided by sum(w) - correction
    recorder("frontend/functions/contract/geometry.py",
             "count = E.maximum(total - correction * spent if aweights is not None else total - correction, 0)",
             "count = E.maximum(total - correction, 0)"),
    # pad(x, (-1, 2), mode="circular"): wraps around what is cut off
    recorder("frontend/functions/shape/moving.py",
             '    if mode == "circular" and min(low, high) < 0:          # PyTorch wraps around the cropped '
             "tensor\n"
             "        x = sliced(x, at, max(0, -low), x.shape[at] - max(0, -high))\n"
             "        low, high = max(0, low), max(0, high)\n",
             ""),
    # x[:, i, 0, j], i and j vectors: their dimension comes first
    recorder("frontend/functions/index/subscript.py",
             "return not any(k is None or isinstance(k, tuple) for k in keys[at[0]: at[-1] + 1])",
             'return all(k == "array" for k in keys[at[0]: at[-1] + 1])'),

    # -- rewrite rules -------------------------------------------------------------------------------------------------
    # x ^ -1: x
    rule("dialects/tensor/binary.py",
         "if is_splat(op.rhs, ones if isinstance(op, And) else 0):",
         "if is_splat(op.rhs, ones if isinstance(op, And | Xor) else 0):", rule="bits_with_constant", ops="xor"),
    # ~(x >= y) of integers that are equal
    rule("dialects/tensor/compare.py",
         '"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}',
         '"lt": "ge", "ge": "le", "gt": "le", "le": "gt"}', rule="not_of_compare", ops="compare logical_not"),
    # 1 << x: x << 1
    rule("dialects/tensor/binary.py",
         'class Shl(Binary, name="tensor.shl"):',
         'class Shl(Binary, name="tensor.shl", commutative=True):', rule="splat_to_the_right", ops="shl"),
    # x + c.sum() of a constant c of float32: the sum is folded in another order, with other last bits
    rule("dialects/tensor/reduce.py",
         "arrays = self.constants() if self.is_order_independent else None\n"
         "        return None if arrays is None else np.asarray(self.ref(*arrays))",
         "arrays = self.constants()\n"
         "        return None if arrays is None else np.asarray(self.ref(*arrays))", ops="reduce_sum"),

    # -- derivatives ---------------------------------------------------------------------------------------------------
    # the gradient of atan2 of numbers about 1e25, whose squares overflow
    derivative("dialects/tensor/trigonometry.py",
               "return ct * (self.rhs / distance / distance), -(ct * (self.lhs / distance / distance))",
               "square = distance * distance\n"
               "        return ct * (self.rhs / square), -(ct * (self.lhs / square))",
               rule="tensor.atan2", ops="atan2"),
    # the gradient of v of a matrix that is wider than high, by svd
    derivative("dialects/tensor/linalg/spectral.py",
               "        if n != k:\n"
               "            dx = dx + product(u, (dv - product(b, v, left=True)) * _inverse(down))\n",
               "", rule="tensor.svd", ops="svd"),
    # the gradient of pinv of a matrix that is wider than high
    derivative("dialects/tensor/linalg/functions.py",
               "return [first + product(product(y, y, left=True), g - product(inner, x))]",
               "return [first]", rule="tensor.pinv", ops="pinv"),
    # the gradient of max_pool1d(x, 3, 2, padding=1, ceil_mode=True) where more is padded after the end
    derivative("dialects/tensor/pooling.py", "within * size(d, dtype) - size(low, dtype)",
               "within * size(d, dtype) - size(high, dtype)", rule="tensor.max_pool", ops="max_pool"),
    # the gradient of a branch that saves two values of one type: both are the last one
    derivative("passes/differentiate/reverse_control.py",
               "at = next((i for i, t in enumerate(slots) if t == type and i not in out), len(slots))",
               "at = next((i for i, t in enumerate(slots) if t == type), len(slots))"),
    # the tangent of a loop that carries a value which its body replaces by one that does not depend on it
    derivative("passes/differentiate/forward.py",
               "return [*results, *(tangents[k] if k in tangents else full(0.0, results[k].type) for k in carried)]",
               "return [*results, *(tangents[k] if k in tangents else own[lead + k] for k in carried)]"),
    # x.backward(g) of a leaf, twice: g is added to itself
    derivative("frontend/autograd/engine.py",
               "                meta.grad = alone(cotangent)\n",
               "                meta.grad = cotangent\n", blame=""),
    # the gradient of t * a, the numpy array a changed before backward
    derivative("frontend/autograd/graph.py",
               "return x.copy() if x.flags.writeable else x",
               "return x", blame=""),
    # y[0] = 5, then y.backward(g): g[0] becomes 0
    derivative("frontend/autograd/view_node.py",
               "        rest = cotangent.clone()\n",
               "        rest = cotangent\n", blame=""),

    # -- expansions ----------------------------------------------------------------------------------------------------
    # pow(x, 1e300) of float64: the low part of the exponent is not small then
    numerics("dialects/expansions/power.py",
             '    finite = b.cmp("olt", b.abs(exponent), b.const(1100, x))\n'
             "    low = b.select(finite, low, b.const(0, x))\n",
             "", ops="pow"),
    # erf of float64 numbers beyond 4: erf(4)
    numerics("dialects/expansions/error_function.py",
             "w = horner(b, _LOG_ERFC[bits], clamp(b, a, None, {32: 4.0, 64: 6.0}[bits]))",
             "w = horner(b, _LOG_ERFC[bits], clamp(b, a, None, 4.0))", ops="erf"),
    # hypot(1e-130, 1e120) of float64: inf, as the greater one is scaled up, too
    numerics("dialects/expansions/arithmetic.py",
             'factor = b.select(b.iand(*either("olt", 2.0**-400)), b.const(2.0**600, x), one)',
             'factor = b.select(b.ior(*either("olt", 2.0**-400)), b.const(2.0**600, x), one)', ops="hypot atan2"),
    # sinh and cosh of float64 numbers beyond 709, and of infinity: finite, and too small
    numerics("dialects/expansions/hyperbolic.py",
             "clamp(b, x, None, 712.0)",
             "clamp(b, x, None, 709.0)", ops="sinh cosh"),

    # -- fusion and merging --------------------------------------------------------------------------------------------
    # exp(x) / exp(x).sum(1) + sin(x) / sin(x).sum(1): both values are kept in the memory of the result
    fusion("passes/fuse/stages.py",
           "            if slot >= 0 and stages.outputs[slot] is not v:\n"
           "                claimed.add(slot)\n",
           "", ops="exp sin reduce_sum", blame="fuse"),
    # x[i] @ w[2] for i in range(3): the products are with w[0]
    merging("passes/outline.py",
            "first.put([sym(symbols[differ.index(i)]) if i in differ else e for i, e in enumerate(first.indices)])",
            "first.put([sym(symbols[differ.index(i)]) if i in differ else 0 for i, e in enumerate(first.indices)])",
            ops="dot_general"),
    # two functions under checkpoint, of which one passes p as the weight of layer_norm, the other one as its bias
    merging("passes/analysis/structural_key.py",
            "                        tuple(item.segments) if item.segments is not None else None, "
            "len(item.regions)))",
            "                        len(item.regions)))", ops="layer_norm", blame="cse"),

    # -- aliasing ------------------------------------------------------------------------------------------------------
    # a call that is given a tensor of from_numpy(a), donated: a is written over
    aliasing("frontend/storage.py",
             "return tensor._array.copy() if storage.handed or len(storage.tensors()) > 1 else "
             "storage.writable(tensor)",
             "return tensor._array.copy() if len(storage.tensors()) > 1 else storage.writable(tensor)", blame=""),
    # a loop that carries a tensor which only its body reads: a temporary of the body is written over it
    aliasing("passes/bufferize/plan.py",
             "self.assign(v, storage, max(self.life.last.get(v, -1), self.life.end[op]))",
             "self.assign(v, storage, self.life.last.get(v, -1))"),
    # the gradient of y * y, y changed in place by way of a view after the product: that of the new elements
    aliasing("frontend/autograd/operation_node.py",
             "out[i] = array if x._storage is None else kept(x)",
             "out[i] = array", blame=""),

    # -- loops, tails and sizes ----------------------------------------------------------------------------------------
    # sort of 2^k + 1 elements, where their number is a symbol: one level less than it takes
    loops("dialects/tensor/sort.py",
          'small = compare("lt", tensor.Shl(full(1, powers), powers).result, size(n, i64))',
          'small = compare("lt", tensor.Shl(full(1, powers), powers).result, size(n - 1, i64))',
          ops="argsort", blame="decompose"),
    # searchsorted in 2^k sorted numbers: one halving is missing
    loops("dialects/tensor/sort.py",
          "return for_loop(0, _levels(n + 1), [low, high], halve)[0]",
          "return for_loop(0, _levels(n), [low, high], halve)[0]", ops="search_sorted", blame="decompose"),
    # cat([x, x, y])[::2], where the size of x is a symbol and y has 2 elements: the last one is missing
    loops("ir/sizes.py",
          "return whole + (rest // b if isinstance(b, int) else 0)",
          "return whole", ops="slice", blame=""),
    # logcumsumexp of 5 elements, where their number is a symbol: without the last doubling
    loops("dialects/tensor/cumulative.py",
          'return arith.CmpI("slt", reach, as_index(n)).result',
          'return arith.CmpI("slt", arith.AddI(reach, reach).result, as_index(n)).result',
          ops="logcumsumexp", blame="decompose"),
    # cumprod of 5 complex numbers: the last one lacks a factor
    loops("dialects/tensor/parts.py",
          "    while step < n:\n"
          "        later = mul(",
          "    while 2 * step < n:\n"
          "        later = mul(", ops="cumulative", blame="decompose_complex"),
    # matrix_exp of a small and a large matrix in one batch: the small one is squared once too often
    loops("dialects/tensor/linalg/functions.py",
          'return [select(compare("lt", from_index(i), steps), product(y, y), y)]',
          'return [select(compare("le", from_index(i), steps), product(y, y), y)]',
          ops="matrix_exp", blame="decompose"),

    # -- lowering ------------------------------------------------------------------------------------------------------
    # int64 to bfloat16 by float64: 2^62 + 2^54 + 1 is rounded twice
    lowering("passes/lower_to_llvm/arithmetic.py",
             "    if width(x) == 64:\n"
             "        x = _collect(x, signed=cls is llvm.SIToFP)\n",
             "", ops="cast"),
    # x[1:] + x[:-1] of a matrix whose sizes are symbols: both begin at the first row
    lowering("passes/lower_to_llvm/memory.py",
             "        else:\n"
             "            number = low.plus(number, offset)\n"
             "        terms.append",
             "        terms.append"),
    # floats below the least int32, to int32: 0
    lowering("passes/tensor_to_loop/scalar.py",
             '    under = arith.CmpF("ole", x, _const(float(low), x)).result\n'
             "    return arith.Select(under, arith.constant(low, number.type), out).result",
             "    return out", ops="cast", blame="tensor_to_loop"),
    # 2 ** 128 of uint8: 1
    lowering("passes/tensor_to_loop/scalar.py",
             "bits = a.type.width if _is_unsigned(t) else a.type.width - 1",
             "bits = a.type.width - 1", ops="pow", blame="tensor_to_loop"),

    # -- calls ---------------------------------------------------------------------------------------------------------
    # a function that writes to its argument, called twice: the second call returns a tuple, with the argument in it
    call("mlc/fast_path.py",
         "len(call.given) != len(call.args) or recorded.written\n",
         "len(call.given) != len(call.args)\n"),
    # f(a, np.float64(0.1)) of a numpy array of integers: float32, and not float64
    call("frontend/signature.py",
         "beside = any(type(x) is Tensor for x in leaves)",
         "beside = bool(leaves)"),

    # -- cache keys ----------------------------------------------------------------------------------------------------
    # f(x, 0.0) and then f(x, -0.0), the number static
    cache("frontend/leaf_keys.py",
          "        return kind, x.hex()\n",
          "        return kind, x\n"),
    # x * 2 and then x * np.array(2), x a 0-d tensor of int8: the code for a number that has no type
    cache("frontend/eager.py",
          "            self._array(np.array(x), x, True)\n"
          "            return kind\n",
          "            return self._array(np.array(x), x, True)\n"),
    # a global numpy array that is given another shape
    cache("frontend/script/reached_state.py",
          "return (self.x.shape, self.x.tobytes()), ()",
          "return (self.x.size, self.x.tobytes()), ()"),
)
