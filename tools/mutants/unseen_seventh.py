"""Seeded faults by somebody who had seen neither the checks nor the other lists: each at another place."""

from __future__ import annotations

from mlc.tools.mutants.fault import (
    Fault,
    aliasing,
    cache,
    derivative,
    emission,
    fusion,
    gpu,
    lowering,
    recorder,
    rows,
    rule,
    transform,
)

FAULTS: tuple[Fault, ...] = (
    # an array of float64 times a complex tensor of no dimensions
    recorder("frontend/operands.py", "return ComplexType(f64 if dtype == f64 else f32)", "return ComplexType(f32)"),
    # categorical(logits, shape=...) whose shape has further dimensions
    recorder("frontend/functions/random/choices.py", "float_type(x.dtype)), lead + at)", "float_type(x.dtype)), at)"),
    # fill_diagonal_ of a tall matrix without `wrap`
    recorder("frontend/in_place_methods.py", "len(shape) > 2 else shape[1] * shape[1]",
             "len(shape) > 2 else shape[0] * shape[1]"),
    # blocks that are not squares
    recorder("frontend/functions/sparse/convert.py", "within = (row % height) * width + column % width",
             "within = (row % height) * height + column % width"),
    # 0 to the power of 0
    rows("transform", "decompose_complex")("dialects/tensor/parts.py", "at = select(zero(y), full(1, like), "
                                           "full(0, like))", "at = full(0, like)", "tensor.pow", "pow"),
    rule("dialects/arith/rules.py", "@rewrite(AddI, OrI, XorI)", "@rewrite(AddI, SubI, OrI, XorI)",
         "zero_on_the_left"),
    # two shifts by different numbers of ranks
    rows("distributed", "combine_collectives")("passes/combine_collectives.py",
                                               "how = getattr(op, \"kind\", \"\"), getattr(op, \"offset\", 0)",
                                               "how = getattr(op, \"kind\", \"\")"),
    derivative("dialects/tensor/linalg/spectral.py", "(of_u - of_v) * _inverse(across + down)",
               "(of_v - of_u) * _inverse(across + down)", "tensor.svd", "svd"),
    # what is batched and selected by a mask: elements that are not active may have any index
    transform("passes/differentiate/batch_operations.py",
              "if at is not None and scope.active is not None and batched[at]:",
              "if at is not None and scope.active is not None and not batched[at]:", blame="vmap"),
    # a conditional of which only the second branch has a tangent
    transform("passes/differentiate/forward.py", "for m in functions if m is not None for j in m.of})",
              "for m in functions[:1] if m is not None for j in m.of})", blame="jvp"),
    # a loop whose carried values feed each other over several iterations
    transform("passes/differentiate/reverse_control.py", "if not more and not back:", "if not more:"),
    fusion("passes/fuse/graph.py", "other.before & ~producer.bit | consumer.bit | consumer.before",
           "other.before & ~producer.bit | consumer.bit"),
    # two results, and one donated argument of their type
    aliasing("passes/bufferize/function.py", "if at not in taken and self.may_be_over(v, self.block.args[at]):",
             "if self.may_be_over(v, self.block.args[at]):"),
    # the last elements of a row that is shorter than a vector, of a tile that is stored transposed
    rows("schedule", "loop_to_scf")("passes/lower_kernel/transposed.py",
                                    "if isinstance(count, int) and length == lanes:", "if isinstance(count, int):"),
    # a share that begins within three dimensions of tiles
    lowering("passes/scf_to_llvm/parallel.py", "for count in reversed(trips[1:]):", "for count in trips[1:]:"),
    # rows of a matrix that are no multiple of a vector begin anywhere
    emission("passes/lower_to_llvm/memory.py", "alignment = op.alignment or element(type).itemsize\n",
             "alignment = op.alignment or element(type).itemsize * type.shape[0]\n"),
    # the number of the lowest lane that a shuffle upwards reads
    gpu("passes/gpu_to_nvvm.py", "(0 if kind == \"up\" else WARP - 1)", "(WARP - 1)", blame="gpu_to_nvvm"),
    # the list of updates is read by threads that have not written their part
    gpu("passes/loop_to_gpu/updates.py", "            place = arith.AddI(place, count).result\n        gpu.Barrier()\n",
        "            place = arith.AddI(place, count).result\n"),
    # code for many sizes serves sizes that it was found to be wrong for
    cache("mlc/dispatch_cache.py", "[tuple(a.shape) for a in call.arrays], self.size_constraints)",
          "[tuple(a.shape) for a in call.arrays], ())"),
    # the fifth of the groups of a block, whose scales lie elsewhere
    rows("loops", "loop_to_scf")("passes/lower_kernel/quads.py", "late if b.place >= 4 else below",
                                 "late if b.place > 4 else below"),
)
