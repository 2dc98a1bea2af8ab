"""Seeded faults by somebody who had seen neither the checks nor the other lists: from the recorder to the cache."""

from __future__ import annotations

from mlc.tools.mutants.fault import Fault, aliasing, cache, call, derivative, recorder, rows, rule, transform

LEGALITY, EPILOGUES, LAYOUTS = "passes/fuse/legality.py", "passes/fuse/epilogues.py", "passes/assign_layouts.py"
TILES, ATTENTION, FLASH = ("passes/schedule/tiles_cpu.py", "passes/schedule/attention_gpu.py",
                           "passes/tensor_to_loop/flash.py")
WRITES, BRANCHES = "frontend/indexed_writes.py", "frontend/loop_carried.py"
MEMORY, PARTITION, LIFETIMES = ("passes/lower_kernel/memory.py", "passes/loop_to_scf/partition.py",
                                "passes/bufferize/lifetimes.py")

FAULTS: tuple[Fault, ...] = (
    # what only the second branch changes in place
    recorder(BRANCHES, "[*changed[0] | changed[1]]", "[*changed[0]]"),
    # x[:, i, :, j] = y, whose indexed dimensions come first
    recorder(WRITES, "if dims[-1] - lead == len(dims) - 1:", "if lead:"),
    rule("dialects/tensor/slicing.py", "if not (is_splat(a.value, 0) and is_splat(b.value, 0))",
         "if not is_splat(a.value, 0)", "add_of_padded", "pad add"),
    rule("dialects/tensor/elementwise.py", "(isinstance(inner, Neg) and signed)",
         "isinstance(inner, Neg)", "abs_of_neg", "abs neg"),
    derivative("dialects/tensor/cumulative.py", "latest(self.x, self.result, self.axis, self.reverse)",
               "latest(self.x, self.result, self.axis)", "tensor.cumulative", "cumulative"),
    derivative("dialects/tensor/cumulative.py", "self._weighed(widened(tangent), x, -self._finite(), self.reverse)",
               "self._weighed(widened(tangent), x, -self._finite(), not self.reverse)", "tensor.logcumsumexp",
               "logcumsumexp"),
    derivative("dialects/tensor/slicing.py", "rest = select(outside, ct, full(0, ct))", "rest = ct", "tensor.pad",
               "pad"),
    # a loop of steps other than 1 whose bounds differ among the elements of a batch
    transform("passes/differentiate/batch_control.py",
              "tensor.FloorDiv(end - first + by - full(1, by), by)",
              "tensor.FloorDiv(end - first, by)"),
    rows("fusion", "fuse")(LEGALITY, "user not in home.ops and user not in guest.ops for user in "
                           "self.graph.readers(op)) for op in guest.ops)", "user not in home.ops and user not in "
                           "guest.ops for user in self.graph.readers(op)) for op in home.ops)"),
    rows("fusion", "fuse")(EPILOGUES, "if any(group.ops[op] != group.domain.points for op in _crossing(graph, group, "
                           "rest)):", "if any(group.ops[op] is None for op in _crossing(graph, group, rest)):"),
    rows("schedule", "schedule")(TILES, "if found is not None and found[0] == terms else None",
                                 "if found is not None else None", ops="dot_general"),
    rows("gpu", "schedule")(ATTENTION, "whole = all(2 * n % ROW_BYTES == 0 for n in (features, *[width] * "
                            "len(sums)))", "whole = 2 * features % ROW_BYTES == 0"),
    rows("gpu", "tensor_to_loop")(FLASH, "whole = isinstance(count, int) and count % op.block == 0",
                                  "whole = isinstance(count, int) and count >= op.block"),
    # the masks of two halves of a vector that is read with stride 2 become one
    rows("tails and accesses", "loop_to_scf")(MEMORY, "low.once((\"even\", mask, first), lambda: even(first))",
                                              "low.once((\"even\", mask), lambda: even(first))", ops="slice"),
    rows("schedule", "loop_to_scf")(PARTITION, "low.number(_blocks(last, width))",
                                    "low.number(sizes.divide(last, width))"),
    aliasing(LIFETIMES, "if isinstance(around, scf.For | scf.While):\n                until",
             "if isinstance(around, scf.For):\n                until"),
    # an argument that is a captured tensor, too, which the function changes
    call("backends/cpu/wrapper.py", "            self.need(a.compare(\"eq\", a.call(\"is_changed\", self.self, "
         "obj), a.false))", "            a.call(\"is_changed\", self.self, obj)"),
    rows("layout", "assign_layouts")(LAYOUTS, "if [place[a] for a in old] != [*range(place[old[0]], place[old[0]] + "
                                     "len(old))]:", "if sorted(place[a] for a in old) != [*range(least := min(place[a] "
                                     "for a in old), least + len(old))]:"),
    cache("mlc/call.py", "return (tuple(out), self.device, self.autocast, self._autograd()",
          "return (tuple(out), self.device, self._autograd()"),
    rows("backward")(WRITES, "            rest[self.key] = 0\n", ""),
)
