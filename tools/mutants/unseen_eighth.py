"""Seeded faults by somebody who had read the compiler alone, neither its checks nor the other lists."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    cache,
    derivative,
    fusion,
    loops,
    lowering,
    numerics,
    recorder,
    rows,
    rule,
    transform,
)

FAULTS: tuple[Fault, ...] = (
    # fractional max pooling of images that are not square
    recorder("frontend/functions/pooling/fractional.py", "flat[..., None] * image[at] + ",
             "flat[..., None] * image[0] + "),
    # gradient(edge_order=2) at places of uneven distance
    recorder("frontend/functions/calculus.py", "(after - before) / (a + b) * step for step in (a, b)]",
             "(after - before) / (a + b) * step for step in (b, a)]"),
    # nanmedian of an even number of elements that are not NaN
    recorder("frontend/functions/sort/quantiles.py", "E.maximum(_count(x, at) - nans - 1, 0) // 2",
             "E.maximum(_count(x, at) - nans, 0) // 2"),
    # segment_reduce(reduce="mean", initial=...) of a segment without elements
    recorder("frontend/functions/segments.py", "empty = full(math.nan if initial is None else initial, x)",
             "empty = full(math.nan, x)"),
    # the maximum along an axis before the one along which a maximum was taken
    rule("dialects/tensor/reduce.py", "(*inner.axes, *(kept[a] for a in op.axes))", "(*inner.axes, *op.axes)",
         "reduce_twice", "reduce_max reduce_min reduce_any reduce_all"),
    # second derivatives of logcumsumexp: the forward derivative of one from the last element
    derivative("dialects/tensor/cumulative.py", "self._weighed(widened(tangent), x, -self._finite(), self.reverse)",
               "self._weighed(widened(tangent), x, -self._finite(), False)", "tensor.logcumsumexp", "logcumsumexp"),
    # max pooling of padded images in windows that do not overlap
    derivative("dialects/tensor/pooling.py",
               "starts = [0] * lead + [low for _, _, low, _, _ in self.axes()]", "starts = [0] * len(shape)",
               "tensor.max_pool", "max_pool"),
    # jvp of vmap of a loop whose body replaces a carried value by one without a tangent, for elements with no iteration
    transform("passes/differentiate/forward.py",
              "of = sorted({*(function.of if function is not None else ()), *(i for i in request.wrt if i < count)})",
              "of = sorted(function.of if function is not None else ())"),
    # minus infinity to the power of a number that is no integer
    numerics("dialects/expansions/power.py",
             "b.iand(b.cmp(\"olt\", x, b.const(0, x)), b.cmp(\"ogt\", x, b.neg(infinity)))",
             "b.cmp(\"olt\", x, b.const(0, x))", ops="pow"),
    # a positive float // a negative one that divides it
    numerics("dialects/expansions/remainder.py",
             "b.iand(b.ixor(b.cmp(\"olt\", rest, zero), b.cmp(\"olt\", y, zero)), b.cmp(\"une\", rest, zero))",
             "b.ixor(b.cmp(\"olt\", rest, zero), b.cmp(\"olt\", y, zero))", ops="floordiv"),
    # a kernel with two functions of an element that are used before and after a sum: both are kept in one result
    fusion("passes/fuse/stages.py", " and until >= last and i not in claimed):", " and until >= last):"),
    # threads of a kernel whose three or more outer dimensions have different extents
    loops("passes/loop_to_scf/partition.py", "place = sizes.divide(place, counts[d])",
          "place = sizes.divide(place, counts[0])", blame="loop_to_scf"),
    # flip of rows that are no whole number of vectors
    loops("passes/lower_kernel/memory.py", "mask = vector.Shuffle(mask, mask, order).result",
          "mask = vector.Shuffle(mask, mask, tuple(range(low.lanes))).result", blame="loop_to_scf"),
    # int32 to bfloat16, of numbers that are no f32: rounded twice
    lowering("passes/lower_to_llvm/arithmetic.py", "if width(x) < 24:", "if width(x) <= 32:", ops="cast"),
    # a compiled function of a slice, called again with another step
    cache("frontend/leaf_keys.py", "frozen_leaf(x.start), frozen_leaf(x.stop), frozen_leaf(x.step)",
          "frozen_leaf(x.start), frozen_leaf(x.stop)"),
    # the sum of two maxima along a dimension that is divided among ranks
    rows("distributed", "defer_reductions")("passes/defer_reductions.py", " and x.kind == \"add\" and", " and"),
)
